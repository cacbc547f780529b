// SPDX-License-Identifier: Apache-2.0
import Crypto
import JSON
import Simulator
import Testing
import VirtualStage
import Worker

/// Events with many recipients that wait: contract 14, "Parked work".
struct ParkedFloodTests {
    private static let count = 1_200

    private static var uids: [String] { (0..<count).map { "flood-\($0)" } }

    /// A legal event of the size that a shard may have, mostly of a field that nobody knows.
    private static func event(_ id: String, type: String = "p2p") -> Line {
        .message(
            id, to: uids, conv: "flood", type: type,
            push: #""content":"hello","unknown":"\#(String(repeating: "x", count: 300_000))""#)
    }

    enum Trouble: CaseIterable { case rate, away }

    /// Each recipient was parked alone, with the whole event: 360 MB for this one.
    @Test(arguments: Trouble.allCases)
    func `an event whose recipients wait is parked once`(_ trouble: Trouble) throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        if trouble == .rate { settings.appLines = "    limits: {rate: 50}\n" }
        try Stage.with(settings) { stage in
            try stage.play(state: Self.uids.map { .bind($0) })
            let line = Self.event("flood-1")
            let size = try #require(line.value?.count)
            let gone = trouble == .away ? stage.takeAPNsDown() : []
            try stage.writeEvents([line])
            try until("the event is parked") { try stage.metric("carillon_parked_total") > 0 }
            stage.wait(.seconds(15))
            if trouble == .away { stage.bringAPNsUp() }
            try stage.settle(within: .seconds(300))
            let records = stage.records(of: Configuration.Topics().parked)
            let bytes = records.reduce(0) { $0 + ($1.value?.count ?? 0) }
            print("parked, \(trouble): \(records.count) records, \(bytes) bytes of an event of \(size)")
            #expect(bytes < 3 * size + 200 * Self.count)
            #expect(records.allSatisfy { String(decoding: $0.key ?? [], as: UTF8.self) == "imflood" })
            let seen = try stage.look()
            var pushes: [String: Int] = [:]
            for push in gone + seen.pushes where push.status == 200 { pushes[push.token, default: 0] += 1 }
            #expect(Self.uids.allSatisfy { pushes[token($0, "phone")] == 1 })
            let ended = Dictionary(grouping: seen.results) { $0["uid"]?.string ?? "" }
            #expect(Self.uids.allSatisfy { ended[$0]?.count == 1 })
        }
    }

    /// Contract 14: parked work of one app returns at its time, whatever other apps have parked.
    @Test func `another app's parked backlog does not delay what is due`() throws {
        let windows = 12
        var tenant = LocalCluster.Tenant(id: "bad", topic: "com.example.bad")
        tenant.keyPEM = try PrivateKey.generate().pem()
        var settings = LocalCluster.Settings()
        settings.shards = 1
        settings.partitions = 1
        settings.lines = "window: {records: 100}\n"
        settings.tenants = [tenant]
        try Stage.with(settings) { stage in
            let hostile = (0..<100).map { "hostile-\($0)" }
            try stage.play(
                state: hostile.map { Line.bind($0).of("bad") } + [
                    .bind("late"), .state("settings", "late", #""push_when_desktop_online":false,"hold_s":11"#),
                ])
            try stage.redis([Gateway.lease("gw-l"), Gateway.presence("late", "pc", platform: "pc", gateway: "gw-l")])
            try stage.writeEvents(
                (0..<(windows * 100)).map { Line.message("bad-\($0)", to: [hostile[$0 % 100]]).of("bad") })
            try until("the backlog is parked", within: .seconds(600)) {
                try stage.metric("carillon_events_settled_total") >= windows * 100
            }
            let writtenMs = nowMs
            try stage.writeEvents([.message("late-1", to: ["late"])])
            let seen = try stage.look(until: "it is pushed", within: .seconds(120)) {
                !$0.accepted(token("late", "phone")).isEmpty
            }
            let push = try #require(seen.accepted(token("late", "phone")).first)
            print("due in 11 s behind \(windows) windows of another app: \(push.atMs - writtenMs) ms")
            #expect(push.atMs - writtenMs < 17_000)
        }
    }
}
