// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc
import Support
import Testing

@testable import RedisModel

/// Servers in states that refuse commands: model and redis-server refuse the same ones, with the same words.
@Suite struct RefusalTests {
    enum Trouble: String, CaseIterable {
        case full, fewReplicas, replica, staleReplica, fewRights, fewKeys

        /// Commands that begin it, for both.
        var beginning: [String] {
            switch self {
            case .full: ["CONFIG SET maxmemory 1"]
            case .fewReplicas: ["CONFIG SET min-replicas-to-write 1"]
            case .replica: []
            case .staleReplica: ["CONFIG SET replica-serve-stale-data no"]
            case .fewRights: ["ACL SETUSER default -@all +get +eval +evalsha +hgetall +zadd +acl +ping"]
            case .fewKeys: ["ACL SETUSER default resetkeys %R~s* %R~c:* ~z*"]
            }
        }

        var end: [String] {
            switch self {
            case .full: ["CONFIG SET maxmemory 0"]
            case .fewReplicas: ["CONFIG SET min-replicas-to-write 0"]
            case .replica, .staleReplica: ["CONFIG SET replica-serve-stale-data yes"]
            case .fewRights, .fewKeys: ["ACL SETUSER default ~* +@all -time"]
            }
        }

        var isReplica: Bool { self == .replica || self == .staleReplica }
    }

    @Test func eachTroubleRefusesTheSameCommands() throws {
        let seed = DifferentialTests.setting("CARILLON_MODEL_SEED") ?? .random(in: 0..<1_000_000)
        let server = try RedisServer()
        var both = try Differential(port: server.port) { Loop.wallMs() }
        var commands = CommandGenerator(seed: seed, version: both.version)
        var scripts = ScriptGenerator(seed: seed &+ 1, version: both.version)
        for trouble in [nil] + Trouble.allCases.map({ $0 }) + [nil] {
            if let difference = try Self.play(trouble, &both, &commands, &scripts) {
                Issue.record("CARILLON_MODEL_SEED=\(seed), \(trouble?.rawValue ?? "well"): \(difference)")
                return
            }
        }
    }

    static func play(
        _ trouble: Trouble?, _ both: inout Differential, _ commands: inout CommandGenerator,
        _ scripts: inout ScriptGenerator
    ) throws -> Differential.Difference? {
        func words(_ lines: [String]) -> [[[UInt8]]] {
            lines.map { $0.split(separator: " ").map { Array($0.utf8) } }
        }
        if let difference = try both.run(words(trouble?.beginning ?? [])) { return difference }
        if trouble?.isReplica ?? false { try both.setReplica(true) }
        let batch = (0..<600).map { index in index % 2 == 0 ? commands.next() : scripts.next() }
            // A replica keeps what is over until its master removes it.
            .filter { !(trouble?.isReplica ?? false) || $0[0] != Array("DBSIZE".utf8) }
        if let difference = try both.run(batch) { return difference }
        if trouble?.isReplica ?? false { try both.setReplica(false) }
        return try both.run(words(trouble?.end ?? []))
    }
}
