// SPDX-License-Identifier: Apache-2.0
import JSON
import LocalServers
import StageWords
import Support
import Testing
import Worker

/// One legal event with thousands of recipients who must wait.
@Suite(.timeLimit(.minutes(10)))
struct FloodTests {
    private static let count = 4_000

    /// The worker kept a copy of the event for each recipient: gigabytes, so that it died of such an event again and again.
    @Test func `a large event whose recipients wait costs little memory, and the worker answers meanwhile`()
        async throws
    {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        settings.appLines = "    limits: {rate: 100}\n"
        settings.tenants = [LocalCluster.Tenant(id: "shop", topic: "com.example.shop")]
        let stage = try await Stage(settings)
        let uids = (0..<Self.count).map { "flood-\($0)" }
        try await stage.writeState(uids.map { .bind($0) } + [Line.bind("buyer").of("shop")])
        let worker = try await WorkerRun(stage)
        try await until("all binds are applied") {
            try await worker.metrics().sum("carillon_events_settled_total") > Double(Self.count)
        }
        let calm = try await latencies(of: "calm", stage, worker) { $0 == 20 }
        let before = try #require(worker.memory)
        let unknown = String(repeating: "x", count: 580_000)
        let event = Line.message(
            "flood", to: uids, conv: "flood", push: #""content":"hello","unknown":"\#(unknown)""#)
        let size = try #require(event.value?.count)
        try await stage.writeEvents([event])
        let meanwhile = try await latencies(of: "meanwhile", stage, worker) { _ in
            try await worker.metrics().sum("carillon_parked_total") > 0
        }
        let after = try #require(worker.memory)
        await worker.kill()
        let records = try stage.world.records(of: Configuration.Topics().parked)
        let bytes = records.reduce(0) { $0 + ($1.value?.count ?? 0) }
        print(
            """
            an event of \(size) bytes: memory \(before.now >> 20) MB, at most \(after.peak >> 20) MB; \(records.count) parked \
            records with \(bytes) bytes; another app's p99 \(calm) ms, meanwhile \(meanwhile) ms
            """)
        #expect(after.peak - before.now < 150 << 20)
        #expect(bytes < 3 * size + 200 * Self.count)
        await stage.close()
    }

    /// Writes messages of another app, one after the other, and asks `/livez` between them, until `isEnd` with their number.
    ///
    /// - Returns: the greatest latency but one in a hundred, in ms.
    private func latencies(
        of name: String, _ stage: Stage, _ worker: WorkerRun, until isEnd: (Int) async throws -> Bool
    ) async throws -> Int {
        func accepted() async throws -> Double {
            try await worker.metrics().sum("carillon_decisions_total", #"app="shop""#, #"verdict="accepted""#)
        }
        let before = try await accepted()
        var count = 0
        repeat {
            try await stage.writeEvents([Line.message("\(name)-\(count)", to: ["buyer"]).of("shop")])
            count += 1
            #expect(try await worker.answers("/livez") == 200)
            try await until("the message of another app is pushed") {
                try await accepted() >= before + Double(count)
            }
        } while try await !isEnd(count)
        var found: [Int] = []
        try await until("its records are written") {
            found = try stage.world.records(of: Configuration.Topics().results).compactMap { record in
                let text = String(decoding: record.value ?? [], as: UTF8.self)
                guard text.contains(#""msg_id":"\#(name)-"#) else { return nil }
                return try JSONTree(parsing: Array(text.utf8))["latency_ms"]?.int.map(Int.init)
            }
            return found.count >= count
        }
        return found.sorted()[found.count * 99 / 100]
    }
}
