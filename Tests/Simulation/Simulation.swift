// SPDX-License-Identifier: Apache-2.0
import SimulatedFleet
import SimulatedSystem

/// Runs worlds by seed.
public struct Simulation {
    /// What a run came to.
    public struct Report: Sendable {
        public let plan: Plan
        public let violations: [Violation]
        /// Of all that happened, in order: equal for equal runs.
        public let hash: UInt64
        public let lines: [String]
        public let events: Int
        /// Turns of all loops.
        public let turns: Int
        /// The time that passed in the world.
        public let seconds: Double
        public let coverage: Coverage
    }

    /// All worlds of a process share it.
    private let key: SimulatedKey

    /// - Parameter folder: receives the files that a configuration names.
    public init(folder: String) throws { key = try SimulatedKey(folder: folder) }

    public func run(_ plan: Plan, keepsLog: Bool = false, message: String? = nil) throws -> Report {
        let world = try World(plan, key, keepsLog: keepsLog, message: message)
        let violations = try world.run()
        let report = Report(
            plan: plan, violations: violations, hash: world.story.hash ^ world.system.fingerprint,
            lines: world.story.lines ?? [], events: world.traffic.sent.count + world.traffic.states.count,
            turns: world.system.turns, seconds: Double(world.system.nowNanos) / 1e9,
            coverage: world.evidence.map { Coverage(plan, $0) } ?? Coverage())
        world.end()
        return report
    }

    /// What a run shows to its judge.
    func evidence(_ plan: Plan) throws -> World.Evidence? {
        let world = try World(plan, key, keepsLog: false, message: nil)
        _ = try world.run()
        defer { world.end() }
        return world.evidence
    }

    /// Looks for a smaller plan that breaks a rule too: one part less at a time, as long as one does.
    public func shrink(_ plan: Plan) throws -> Report {
        var best = try run(plan)
        var tries = 0
        var goesOn = true
        while goesOn, tries < 60 {
            goesOn = false
            for smaller in Self.smaller(best.plan) {
                tries += 1
                let report = try run(smaller)
                guard !report.violations.isEmpty else { continue }
                best = report
                goesOn = true
                break
            }
        }
        return best
    }

    private static func smaller(_ plan: Plan) -> [Plan] {
        var plans: [Plan] = []
        func add(_ change: (inout Plan) -> Void) {
            var smaller = plan
            change(&smaller)
            plans.append(smaller)
        }
        if plan.faultCount > 0 { add { $0.faultCount -= 1 } }
        for index in plan.faults.indices where plan.faults.count > 1 { add { $0.faults.remove(at: index) } }
        for kind in plan.kinds.sorted(by: { $0.rawValue < $1.rawValue }) { add { $0.kinds.remove(kind) } }
        if plan.messages > 1 { add { $0.messages /= 2 } }
        if plan.workers > 1 { add { $0.workers -= 1 } }
        if plan.usersPerApp > 2 { add { $0.usersPerApp -= 1 } }
        if plan.devicesMax > 1 { add { $0.devicesMax -= 1 } }
        if plan.apps.count > 1 { add { $0.apps.removeLast() } }
        if plan.partitions > 1 { add { $0.partitions -= 1 } }
        return plans
    }
}
