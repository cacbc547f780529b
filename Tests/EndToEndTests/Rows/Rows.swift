import LocalServers
import Processes
import Simulator
import StageWords
import Support
import Testing
import Worker

/// What a user must be able to rely on whatever goes wrong on the way, one test per rule: `--filter Rows`.
///
/// Each has servers of its own but where its suite says otherwise, so all run beside each other.
@Suite struct Rows {}

extension Stage {
    /// Makes a stage without a worker, runs a closure on it and ends it, whichever way the closure ended.
    static func bare(
        _ settings: LocalCluster.Settings = LocalCluster.Settings(), _ body: (Stage) async throws -> Void
    ) async throws {
        let stage = try await Stage(settings)
        do {
            try await body(stage)
        } catch {
            stage.world.redis.thaw()
            await stage.close()
            throw error
        }
        await stage.close()
    }

    /// From now on APNs answers every push with this; nil: as usual.
    nonisolated func answerPushes(_ answer: ScenarioAnswer?) async {
        let rules = answer.map { [ScenarioRule(ScenarioRule.Match(), .answer($0))] } ?? []
        await world.simulator.setScenario(Scenario(rules: rules))
    }

    /// Waits until what came out holds what is wanted, and gives it.
    nonisolated func look(
        until what: String, within limit: Duration = .seconds(90), _ holds: (Seen) throws -> Bool
    ) async throws -> Seen {
        var seen = Seen()
        try await until(what, within: limit) {
            seen = try await look()
            return try holds(seen)
        }
        return seen
    }

    /// Waits for a time of the clock, where passing time is itself what is tested.
    nonisolated func wait(untilMs time: Int64) async throws {
        try await EndToEndTests.until("it is \(time)") { nowMs >= time }
    }
}

/// Why a push cannot go now, although everything about it is decided.
enum Hindrance: String, CaseIterable, Sendable {
    /// APNs refuses connections.
    case away
    case unavailable
    case tooMany

    private var answer: ScenarioAnswer? {
        switch self {
        case .away: nil
        case .unavailable: .unavailable
        case .tooMany: .tooMany
        }
    }

    /// Runs a closure while APNs takes nothing; gives everything that came to it before and meanwhile.
    func during(_ stage: Stage, _ body: () async throws -> Void) async throws -> Seen {
        var gone: [LedgerEntry] = []
        if let answer {
            await stage.answerPushes(answer)
        } else {
            gone = await stage.world.takeSimulatorDown()
        }
        do {
            try await body()
        } catch {
            try await end(stage)
            throw error
        }
        try await end(stage)
        try await stage.settle()
        var seen = try await stage.look()
        seen.pushes = gone + seen.pushes
        return seen
    }

    private func end(_ stage: Stage) async throws {
        if answer == nil { try await stage.world.bringSimulatorUp() } else { await stage.answerPushes(nil) }
    }

    /// Writes messages of one conversation to one device and waits until the first is on its way to APNs and held up.
    func hold(_ messages: [Line], token: String, conv: String, _ stage: Stage) async throws {
        try await stage.writeEvents(messages)
        if answer != nil {
            try await until("the push was refused once") {
                await stage.world.simulator.entries.contains { $0.token == token && $0.status != 200 }
            }
        }
        // Behind them in their conversation, so when it has ended they were decided too.
        let last = "\(conv)-behind"
        try await stage.writeEvents([.message(last, to: ["nobody-\(conv)"], conv: conv)])
        _ = try await stage.look(until: "\(last) is decided") { !$0.outcomes(of: last).isEmpty }
    }
}
