// SPDX-License-Identifier: Apache-2.0
import EventLoop
import RedisModel
import Support
import Testing

/// The nodes of the model redirect as those of a real cluster do, before, during and after a slot moves.
@Suite struct ClusterDifferentialTests {
    @Test func nodesOfAClusterRedirectAlike() async throws {
        let seed = DifferentialTests.setting("CARILLON_MODEL_SEED") ?? .random(in: 0..<1_000_000)
        let cluster = try await RedisCluster(hasReplicas: false)
        var both = try ClusterDifferential(cluster, seed: seed) { Loop.wallMs() }
        let difference = try Self.play(&both)
        #expect(difference == nil, "CARILLON_MODEL_SEED=\(seed): \(difference ?? "")")
    }

    static func play(_ both: inout ClusterDifferential) throws -> String? {
        let slot = ClusterModel.slot(of: "{a}1")
        let source = try both.cluster.owner(of: slot)
        let target = (source + 1) % 3
        if let difference = try both.run(200) ?? both.mapsDiffer() { return difference }
        try both.beginMove(of: slot, to: target)
        if let difference = try both.run(200) { return difference }
        try both.moveKey("{a}1", of: slot, to: target)
        if let difference = try both.run(200) { return difference }
        for key in ["{a}1", "{a}2", "{a}3"] { try both.moveKey(key, of: slot, to: target) }
        if let difference = try both.run(100) { return difference }
        // Writes behind ASKING come to the target alone, so nothing has to move any more.
        try both.endMove(of: slot, to: target)
        return try both.run(200) ?? both.mapsDiffer()
    }
}
