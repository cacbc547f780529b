import EventLoop
import Glibc
import Support
import Testing

@testable import RedisModel

/// The model answers what redis-server answers. `CARILLON_MODEL_COMMANDS` sets the number of commands,
/// `CARILLON_MODEL_SEED` repeats a run.
@Suite struct DifferentialTests {
    private static func setting(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }

    @Test func randomCommandsAndScriptsHaveEqualReplies() throws {
        let seed = Self.setting("CARILLON_MODEL_SEED") ?? .random(in: 0..<1_000_000)
        let count = Int(Self.setting("CARILLON_MODEL_COMMANDS") ?? 5_000)
        let server = try RedisServer()
        var both = try Differential(port: server.port) { Loop.wallMs() }
        print("redis-server \(both.version), \(count) commands, CARILLON_MODEL_SEED=\(seed)")
        var plain = CommandGenerator(seed: seed)
        var scripts = ScriptGenerator(seed: seed &+ 1)
        var left = count
        while left > 0 {
            let batch = (0..<min(left, 200)).map { _ in plain.below(2) == 0 ? plain.next() : scripts.next() }
            left -= batch.count
            if let difference = try both.run(batch) {
                Issue.record("CARILLON_MODEL_SEED=\(seed): \(difference)")
                return
            }
        }
        let difference = try both.compareData()
        #expect(difference == nil, "CARILLON_MODEL_SEED=\(seed): \(difference?.description ?? "")")
    }
}
