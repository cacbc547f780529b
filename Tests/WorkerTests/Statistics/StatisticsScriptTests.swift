// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore
import Redis
import Support
import Testing

@testable import Worker

/// A flush of counts in a real Redis: one step with the positions.
@Suite(.timeLimit(.minutes(10)))
struct StatisticsScriptTests {
    private static let hour: Int64 = 472_222
    private static let nowMs = hour * 3_600_000 + 60_000

    private func rows(
        _ count: UInt64, name: String = "text", task: String = "", _ outcome: CountedOutcome? = nil
    ) -> [CountTable.Row] {
        let outcome =
            outcome ?? CountedOutcome(hour: Self.hour, .accepted, .alert, .direct, credential: 1, isSent: true)
        return [
            CountTable.Row(
                place: CountedPlace(.events, 0), subject: CountedSubject(app: "im", name: name, task: task),
                outcome: outcome, count: count)
        ]
    }

    private func flush(
        _ number: UInt64, _ rows: [CountTable.Row], at position: String = "5 0 ", partitions: [String] = ["e:0"]
    ) -> StatisticsFlush {
        StatisticsFlush(
            rows, number: number, positions: partitions.map { ($0, position) }, days: 31, nowMs: Self.nowMs,
            credentials: ["key"])
    }

    private func begin(_ world: StateWorld, _ owner: String, _ partitions: [String] = ["e:0"]) async throws -> [String]
    {
        try await world.ask(
            { try $0.beginCounting(owner: owner, partitions, tag: $1) },
            { reply in
                var positions: [String] = []
                reply.forEach { positions.append($0.string ?? "?") }
                return positions
            })
    }

    /// The partitions of other owners.
    private func count(_ world: StateWorld, _ flush: StatisticsFlush, _ owner: String) async throws -> [String] {
        try await world.ask(
            { try $0.count(flush, owner: owner, nowMs: Self.nowMs + Int64(flush.number), tag: $1) },
            { reply in
                var going: [String] = []
                reply.forEach { going.append($0.string ?? "?") }
                return going
            })
    }

    private func accepted(_ world: StateWorld) async throws -> Int64 {
        Int64(try await world.text("HGET", StatisticsKey.hour("im", Self.hour), ".a")) ?? 0
    }

    @Test func aFlushCountsOnceAndGivesItsPositionToTheNextOwner() async throws {
        let world = try StateWorld()
        try await world.connect()
        #expect(try await begin(world, "one") == [""])
        #expect(try await count(world, flush(1, rows(3)), "one") == [])
        // Its answer was lost.
        #expect(try await count(world, flush(1, rows(3)), "one") == [])
        #expect(try await accepted(world) == 3)
        #expect(try await count(world, flush(2, rows(2), at: "9 0 "), "one") == [])
        #expect(try await accepted(world) == 5)
        #expect(try await begin(world, "two") == ["9 0 "])
        // One that does not know yet that it lost the partition.
        #expect(try await count(world, flush(3, rows(4), at: "12 0 "), "one") == ["e:0"])
        #expect(try await accepted(world) == 5)
        #expect(try await count(world, flush(1, rows(4), at: "12 0 "), "two") == [])
        #expect(try await accepted(world) == 9)
        await world.end()
    }

    @Test func oneLostPartitionHoldsBackTheWholeFlush() async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await begin(world, "one", ["e:0", "e:1"])
        _ = try await begin(world, "two", ["e:1"])
        #expect(try await count(world, flush(1, rows(3), partitions: ["e:0", "e:1"]), "one") == ["e:1"])
        #expect(try await accepted(world) == 0)
        #expect(try await count(world, flush(1, rows(3), partitions: ["e:0"]), "one") == [])
        #expect(try await accepted(world) == 3)
        await world.end()
    }

    @Test func numbersLiveAsLongAsConfigured() async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await begin(world, "one")
        _ = try await count(world, flush(1, rows(1, task: "spring")), "one")
        let day = Self.hour / 24
        for key in [
            StatisticsKey.hour("im", Self.hour), StatisticsKey.names("im", day), StatisticsKey.tasks("im", day),
            StatisticsKey.taskList("im", day),
        ] {
            let life = try await world.raw("TTL", key) ?? 0
            #expect(life > 31 * 86_400 - 60 && life <= 32 * 86_400, "\(key): \(life)")
        }
        await world.end()
    }

    @Test func ofManyNamesTwoHundredAreKeptAndTheRestIsAddedUp() async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await begin(world, "one")
        let many = (0..<250).flatMap { rows(1, name: "name-\($0)") }
        _ = try await count(world, flush(1, many), "one")
        _ = try await count(world, flush(2, many), "one")
        let hour = StatisticsKey.hour("im", Self.hour)
        #expect(try await world.raw("HLEN", StatisticsKey.names("im", Self.hour / 24)) == 200)
        #expect(try await world.text("HGET", hour, "n\(CountedSubject.hash("name-0")):a") == "2")
        #expect(try await world.text("HGET", hour, "nother:a") == "100")
        #expect(try await accepted(world) == 500)
        await world.end()
    }

    @Test func ofManyTasksTheNewestThousandAreKept() async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await begin(world, "one")
        for block in 0..<11 {
            let some = (0..<100).flatMap { rows(1, task: "task-\(block * 100 + $0)") }
            _ = try await count(world, flush(UInt64(block + 1), some), "one")
        }
        let (tasks, list) = (StatisticsKey.tasks("im", Self.hour / 24), StatisticsKey.taskList("im", Self.hour / 24))
        #expect(try await world.raw("ZCARD", list) == 1000)
        #expect(try await world.text("HGET", tasks, "\(CountedSubject.hash("task-1099")):a") == "1")
        #expect(try await world.raw("HEXISTS", tasks, "\(CountedSubject.hash("task-1099")):t") == 1)
        #expect(try await world.raw("HLEN", tasks) == 4000)
        // A report of a task that has gone is counted, but not for it.
        let opened = CountedOutcome(hour: Self.hour, .opened, .alert, .direct, isSent: true)
        let gone = CountTable.Row(
            place: CountedPlace(.events, 0),
            subject: CountedSubject(app: "im", name: 0, task: CountedSubject.hash("task-0")), outcome: opened, count: 1)
        _ = try await count(world, flush(12, [gone]), "one")
        #expect(try await world.raw("HLEN", tasks) == 4000)
        #expect(try await world.text("HGET", StatisticsKey.hour("im", Self.hour), ".w") == "1")
        await world.end()
    }

    @Test func whatIsWrittenIsRead() async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await begin(world, "one")
        func outcome(
            _ kind: CountedOutcome.Kind, _ reason: String, sent: Bool, push: CountedOutcome.PushKind = .alert
        ) -> CountedOutcome {
            CountedOutcome(
                hour: Self.hour, kind, push, .group, reason: CountedReason.code(reason), credential: sent ? 1 : 0,
                isSent: sent)
        }
        let all =
            rows(4, task: "spring", outcome(.accepted, "ok", sent: true))
            + rows(2, outcome(.accepted, "ok", sent: true, push: .background))
            + rows(1, outcome(.rejected, "Unregistered", sent: true))
            + rows(3, outcome(.suppressed, "dnd", sent: false))
            + rows(5, outcome(.online, "acked", sent: false))
            + rows(1, task: "spring", outcome(.opened, "ok", sent: true))
            + rows(2, task: "spring", outcome(.arrived, "ok", sent: true))
            + rows(7, outcome(.opened, "ok", sent: false))
        _ = try await count(world, flush(1, all), "one")
        let reader = try StateReader(.single(RedisEndpoint(url: world.server.url)))
        try await reader.open()
        let from = Self.hour * 3_600_000
        let report = try await StatisticsReads(reader).statistics(app: "im", fromMs: from, toMs: from + 3_600_000)
        await reader.close()
        #expect(report.total.sent == 7 && report.total.accepted == 6 && report.total.alerts == 4)
        #expect(report.total.rejected == 1 && report.total.suppressed == 3 && report.total.online == 5)
        #expect(report.total.opened == 1 && report.total.arrived == 2 && report.total.uncheckedOpened == 7)
        #expect(report.total.openRate == 0.25 && report.total.arrivalRate == 0.5)
        #expect(report.hours.keys.sorted() == [from] && report.hours[from] == report.total)
        #expect(report.days.values.first == report.total)
        #expect(
            report.reasons.mapKeys == [
                "accepted ok": 6, "rejected Unregistered": 1, "suppressed dnd": 3, "online acked": 5,
            ])
        #expect(report.credentials["key"]?.sent == 7 && report.credentials["key"]?.opened == 1)
        #expect(report.pushTypes["background"]?.accepted == 2 && report.lanes["group"]?.online == 5)
        #expect(report.templates.keys.sorted() == ["text"] && report.templates["text"]?.suppressed == 3)
        #expect(report.tasks.keys.sorted() == ["spring"] && report.tasks["spring"]?.openRate == 0.25)
        #expect(report.json.contains(#""open_rate":0.25"#))
        await world.end()
    }
}

extension [StatisticsReport.Reason: Int64] {
    fileprivate var mapKeys: [String: Int64] {
        [String: Int64](map { ("\($0.key.verdict) \($0.key.reason)", $0.value) }, uniquingKeysWith: +)
    }
}
