// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop

/// Gives pushes to an APNs client until it has an outcome. Loop-bound.
protocol PushFeeder: APNsClientDelegate {
    associatedtype Plan: Sendable
    associatedtype Outcome: Sendable

    /// Called once.
    var onEnd: ((Outcome) -> Void)? { get set }

    init(_ plan: Plan, loop: Loop) throws
    func begin()
    func close()
}

/// Runs a feeder on a loop of its own.
actor PushLoad<Feeder: PushFeeder> {
    private nonisolated let loop: Loop
    private var feeder: Feeder?

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private init(loop: Loop) {
        self.loop = loop
    }

    static func play(_ plan: Feeder.Plan) async throws -> Feeder.Outcome {
        let loop = try Loop(name: "client")
        loop.start()
        defer { loop.stop() }
        let load = PushLoad(loop: loop)
        let outcome = try await load.run(plan)
        await load.end()
        return outcome
    }

    private func run(_ plan: Feeder.Plan) async throws -> Feeder.Outcome {
        let feeder = try Feeder(plan, loop: loop)
        self.feeder = feeder
        return await withCheckedContinuation { continuation in
            feeder.onEnd = { continuation.resume(returning: $0) }
            feeder.begin()
        }
    }

    private func end() {
        feeder?.close()
        feeder = nil
    }
}
