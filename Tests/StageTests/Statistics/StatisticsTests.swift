// SPDX-License-Identifier: Apache-2.0
import JSON
import LocalServers
import PushCore
import SimulatedFleet
import SimulatedSystem
import StageWords
import Testing
import VirtualStage

@testable import Worker

/// The numbers of all workers in Redis: each outcome once, whatever happens to the workers, and rates that compare like with like.
@Suite struct StatisticsTests {
    private static var settings: LocalCluster.Settings {
        var settings = LocalCluster.Settings()
        settings.scenario = TokenPrefix.scenario
        return settings
    }

    /// All that is counted now, of the app `im`.
    private func counted(_ stage: Stage) -> StatisticsReport {
        let hour = stage.system.wallMs / StatisticsKey.hourMs
        let hours = (hour - 30)..<(hour + 2)
        var report = StatisticsReport(app: "im", hours: hours)
        func fields(_ key: String) -> [String: String] {
            let words = Self.words(stage.redis.inline("HGETALL \(key)"))
            return Dictionary(
                stride(from: 0, to: words.count - 1, by: 2).map { (words[$0], words[$0 + 1]) },
                uniquingKeysWith: { first, _ in first })
        }
        for day in Set(hours.map { $0 / 24 }) { report.add(tasks: fields(StatisticsKey.tasks("im", day))) }
        for hour in hours {
            let names = fields(StatisticsKey.names("im", hour / 24))
            for (field, count) in fields(StatisticsKey.hour("im", hour)) {
                report.add(field, Int64(count) ?? 0, hour: hour, names: names)
            }
        }
        return report
    }

    private static func words(_ reply: [UInt8]) -> [String] {
        var words: [String] = []
        var lines = reply.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).makeIterator()
        while let line = lines.next() {
            guard line.first == UInt8(ascii: "$"), let text = lines.next() else { continue }
            words.append(String(decoding: text.dropLast(), as: UTF8.self))
        }
        return words
    }

    /// Lets the last flush come.
    private func flushed(_ stage: Stage) -> StatisticsReport {
        stage.wait(.seconds(3))
        return counted(stage)
    }

    /// The results, each (event, user, device) once.
    private func recorded(_ stage: Stage) throws -> [String: Int64] {
        var last: [String: String] = [:]
        for result in try stage.look().results {
            let key = ["event_id", "uid", "device"].map { result[$0]?.string ?? "-" }.joined(separator: " ")
            last[key] = "\(result["verdict"]?.string ?? "?") \(result["reason"]?.string ?? "?")"
        }
        return Dictionary(grouping: last.values) { $0 }.mapValues { Int64($0.count) }
    }

    private func reasons(_ report: StatisticsReport) -> [String: Int64] {
        Dictionary(
            report.reasons.map { ("\($0.key.verdict) \($0.key.reason)", $0.value) }, uniquingKeysWith: { $0 + $1 })
    }

    private func told(_ kind: String, _ uid: String, _ pid: String, _ message: String?, device: String = "phone")
        -> Line
    {
        let id = message.map { #","msg_id":"\#($0)""# } ?? ""
        let time = kind == "open_report" ? "opened_ms" : "arrived_ms"
        return .state(kind, uid, #""device":"\#(device)","pid":"\#(pid)","\#(time)":\#(nowMs)\#(id)"#)
    }

    @Test func eachOutcomeCountsForItsKinds() throws {
        try Stage.with(Self.settings) { stage in
            let gone = token("b", "phone", TokenPrefix.gone)
            try stage.play(
                state: [.bind("a"), .bind("a", "pad"), .bind("b", as: gone)],
                events: [
                    .message("m1", to: ["a"], push: #""content":"x","task_id":"spring""#),
                    .message("m2", to: ["a"], push: #""silent":true"#), .message("m3", to: ["b"]),
                    .message("m4", to: ["nobody"]), .message("m1", to: ["a"], event: "again"),
                ])
            let report = flushed(stage)
            #expect(report.total.sent == 5 && report.total.accepted == 4 && report.total.alerts == 2)
            #expect(try reasons(report) == recorded(stage), "\(report.reasons)")
            #expect(report.pushTypes["background"]?.accepted == 2 && report.pushTypes["alert"]?.rejected == 1)
            #expect(report.lanes["silent"]?.accepted == 2 && report.lanes["direct"]?.accepted == 2)
            #expect(report.templates["RC:TxtMsg"]?.sent == 5)
            #expect(report.tasks.keys.sorted() == ["spring"] && report.tasks["spring"]?.alerts == 2)
            #expect(report.credentials.values.reduce(0) { $0 + $1.sent } == 5)
        }
    }

    @Test func aReportCountsOnceForItsPushesHourAndAnInventedOneEntersNoRate() throws {
        try Stage.with { stage in
            let seen = try stage.play(
                state: [.bind("a"), .bind("b")], events: [.message("m1", to: ["a"]), .message("m2", to: ["b"])])
            let pid = try #require(seen.push(of: "m1")?.json["pid"]?.string)
            let other = try #require(seen.push(of: "m2")?.json["pid"]?.string)
            let hour = stage.system.wallMs / StatisticsKey.hourMs
            // The device is faster than the mark of its push.
            try stage.play(state: [told("arrived_report", "a", pid, "m1")])
            // In a later hour: late reports, repeats, and what nobody was sent.
            stage.wait(.seconds(3600))
            let fresh = PushIDPrefix(app: "im", uid: "a", kind: .message, id: "never").id(tokenHex: token("a", "phone"))
            try stage.play(state: [
                told("open_report", "a", pid, "m1"), told("open_report", "a", pid, "m1"),
                told("open_report", "a", fresh.description, "never"), told("open_report", "a", other, "m2"),
                told("open_report", "a", pid, nil, device: "pad"), told("open_report", "b", "pid", "m2"),
            ])
            let report = flushed(stage)
            #expect(report.total.alerts == 2 && report.total.opened == 1 && report.total.arrived == 1)
            #expect(report.total.uncheckedOpened == 4, "\(report.total)")
            let ofPush = try #require(report.hours[hour * StatisticsKey.hourMs])
            #expect(ofPush.openRate == 0.5 && ofPush.arrivalRate == 0.5)
            #expect(report.templates["RC:TxtMsg"]?.openRate == 0.5 && report.lanes["direct"]?.openRate == 0.5)
            #expect(report.hours.values.allSatisfy { ($0.openRate ?? 0) <= 1 && ($0.arrivalRate ?? 0) <= 1 })
        }
    }

    @Test func aSilentPushHasNoRate() throws {
        try Stage.with { stage in
            let seen = try stage.play(state: [.bind("a")], events: [.message("m1", to: ["a"], push: #""silent":true"#)])
            let pid = try #require(seen.push(of: "m1")?.json["pid"]?.string)
            try stage.play(state: [told("arrived_report", "a", pid, "m1")])
            let report = flushed(stage)
            #expect(report.total.accepted == 1 && report.total.alerts == 0 && report.total.arrivalRate == nil)
            #expect(report.total.arrived == 0 && report.total.uncheckedArrived == 1)
        }
    }

    /// APNs had a request: the push counts as sent, though it ends as read while it waits for its next try.
    @Test func `a push with a request counts as sent, however it ends`() throws {
        try Stage.with { stage in
            try stage.play(state: [.bind("a")])
            stage.answerPushes(.tooMany)
            try stage.writeEvents([.message("m1", to: ["a"], seq: 1)])
            _ = try stage.look(until: "it is refused") { !$0.pushes(to: token("a", "phone")).isEmpty }
            try stage.play(state: [.read("a", #""up_to_seq":1"#)])
            _ = try stage.look(until: "it has ended") { $0.outcomes(of: "m1") == ["a/phone suppressed already_read"] }
            let report = flushed(stage)
            #expect(report.total.sent == 1 && report.total.suppressed == 1 && report.total.accepted == 0)
        }
    }

    /// The kill comes at every phase of a record: before its push, before its mark, before its flush, before its commit.
    @Test(arguments: [0, 5, 15, 40, 100, 250, 500, 900, 1_000, 1_050, 1_300])
    func aKillLosesAndDoublesNothing(milliseconds: Int) throws {
        try Stage.with { stage in
            let users = (0..<4).map { "u\($0)" }
            try stage.play(
                state: users.map { .bind($0) } + users.map { .bind($0, "pad") } + [
                    .state("mute", "u3", #""conv_id":"c-u3","level":5"#)
                ])
            for round in 0..<3 {
                try stage.writeEvents(
                    users.flatMap { user in
                        (0..<3).map {
                            .message("m\(round)-\(user)-\($0)", to: [user], push: #""content":"x","task_id":"t""#)
                        }
                    })
                stage.wait(.milliseconds(milliseconds))
                stage.kill(try stage.worker)
                try stage.startWorker(waits: false)
            }
            try stage.awaitGroup(of: stage.workers)
            try stage.settle()
            let report = flushed(stage)
            #expect(try reasons(report) == recorded(stage))
            #expect(report.total.sent == 54 && report.tasks["t"]?.accepted == 54)
        }
    }

    /// The event expires between two tries. The first one finished two members, or all; the third is live and does not answer.
    @Test(arguments: ["late", "nobody"])
    func whatAnEndedTryFinishedOfAGroupEventThatExpiresCounts(live: String) throws {
        try Stage.with(Self.settings) { stage in
            try stage.play(state: [.bind("a"), .bind("b"), .bind("late")])
            try stage.redis([
                "HSET g:{im:g} a 0 b 5 late 0", Gateway.lease("gw"), Gateway.presence(live, "phone", gateway: "gw"),
            ])
            let finished = live == "late" ? 2 : 3
            let expiresMs = nowMs + 20_000
            try stage.writeEvents([
                .message("m", to: nil, conv: "g", type: "group", #","expire_at_ms":\#(expiresMs)"#)
            ])
            _ = try stage.look(until: "the others are finished") { $0.outcomes(of: "m").count == finished }
            stage.wait(.milliseconds(100))
            stage.kill(try stage.worker)
            stage.wait(untilMs: expiresMs + 1_000)
            try stage.startWorker()
            try stage.settle()
            let report = flushed(stage)
            let outcomes = try stage.look().outcomes(of: "m")
            #expect(try reasons(report) == recorded(stage), "\(outcomes)")
            #expect(report.total.accepted == (live == "late" ? 1 : 2) && report.total.suppressed == 1)
            #expect(outcomes.count == 3 && !outcomes.contains { $0.hasPrefix(" ") }, "\(outcomes)")
        }
    }

    /// The next try parks the record before it reads the marks, because an earlier event of its conversation is parked.
    @Test func whatAnEndedTryFinishedOfARecordThatIsParkedAsAWholeCounts() throws {
        var settings = Self.settings
        // Only the events of several apps are parked as a whole.
        settings.tenants = [LocalCluster.Tenant(id: "other", topic: "com.example.other")]
        try Stage.with(settings) { stage in
            try stage.play(state: [.bind("a"), .bind("b"), .bind("late")])
            try stage.redis([Gateway.lease("gw"), Gateway.presence("late", "phone", gateway: "gw")])
            try stage.writeEvents([.message("m", to: ["a", "b", "late"], conv: "g", type: "group")])
            _ = try stage.look(until: "two are pushed") { $0.outcomes(of: "m").count == 2 }
            stage.wait(.milliseconds(100))
            stage.kill(try stage.worker)
            try stage.redis([#"SET c:y:{im:g} "2 \#(nowMs + 3_000) \#(nowMs) \#(nowMs + 60_000) mearlier""#])
            try stage.startWorker()
            try stage.settle()
            let parked = try stage.look().parked
            #expect(parked.map { $0["reason"]?.string } == ["behind"])
            let report = flushed(stage)
            #expect(try reasons(report) == recorded(stage))
            #expect(report.total.sent == 3)
        }
    }

    /// Two records of one recipient would both count what the ended try finished.
    @Test func `what an ended try finished is not parked behind an earlier message`() throws {
        try Stage.with(Self.settings) { stage in
            try stage.play(state: [.bind("a"), .bind("late")])
            try stage.redis([Gateway.lease("gw"), Gateway.presence("late", "phone", gateway: "gw")])
            try stage.writeEvents([.message("m", to: ["a", "late"], conv: "g", type: "group")])
            _ = try stage.look(until: "one is pushed") { $0.outcomes(of: "m").count == 1 }
            stage.wait(.milliseconds(100))
            stage.kill(try stage.worker)
            try stage.redis([#"HSET c:u:{im:a} y "2 \#(nowMs + 3_000) \#(nowMs) \#(nowMs + 60_000) mfirst""#])
            try stage.startWorker()
            try stage.settle()
            #expect(try stage.look().parked.isEmpty)
            let report = flushed(stage)
            #expect(try reasons(report) == recorded(stage))
        }
    }

    /// Two workers have an event and its copy in `carillon.parked` at the same time: its commit was refused.
    @Test func `an event that expires beside its parked copy ends once`() throws {
        try Stage.with(.oneShard) { stage in
            let users = (0..<40).map { "user-\($0)" }
            try stage.play(state: users.map { .bind($0) })
            stage.answerPushes(.unavailable)
            let endMs = nowMs + 30_000
            try stage.writeEvents(users.map { .message("m-\($0)", to: [$0], #","expire_at_ms":\#(endMs)"#) })
            _ = try stage.look(until: "all are parked") { $0.parked.count == users.count }
            stage.wait(.seconds(3))
            stage.kill(try stage.worker)
            for partition in 0..<4 { stage.kafka.setCommitted("carillon", "im.events", partition, offset: 0) }
            stage.wait(untilMs: endMs + 1_000)
            for _ in 0..<2 { try stage.startWorker(waits: false) }
            try stage.awaitGroup(of: stage.workers)
            stage.wait(.seconds(20))
            let expired = try stage.look().results.filter { $0["verdict"]?.string == "expired" }
            #expect(expired.count == users.count)
            #expect(try reasons(flushed(stage)) == recorded(stage))
        }
    }

    /// The next try of the chunk parks its members as they are, because an earlier message of each is parked.
    @Test func `what an ended try finished of a large group's revoke counts where its members are parked`() throws {
        var settings = LocalCluster.Settings.oneShard
        settings.lines = "planner: {direct_max: 1000}\n"
        try Stage.with(settings) { stage in
            let members = (0..<1_200).map { "member-\($0)" }
            try stage.play(state: [.bind(members[0])])
            try stage.redis(["HSET g:{im:g} \(members.map { "\($0) 0" }.joined(separator: " "))"])
            try stage.play(events: [.message("m", to: nil, conv: "g", type: "group")])
            stage.answerPushes(.late(20_000))
            try stage.writeEvents([.revoke("r", of: "m", to: nil, conv: "g", type: "group")])
            _ = try stage.look(until: "all but one are finished") { $0.outcomes(of: "r").count == members.count - 1 }
            stage.wait(.milliseconds(200))
            stage.kill(try stage.worker)
            stage.answerPushes(nil)
            try stage.redis(
                members.map { #"HSET c:u:{im:\#($0)} y "2 \#(nowMs + 12_000) \#(nowMs) \#(nowMs + 60_000) mfirst""# })
            try stage.startWorker()
            try stage.settle()
            #expect(try !stage.look().parked.isEmpty)
            let report = flushed(stage)
            #expect(try reasons(report) == recorded(stage))
        }
    }

    /// The phone of `a` waits in the topic for its desktop and ends while another recipient keeps the event open. The next try of
    /// the event finds `a` finished by another record.
    @Test func aParkedRecipientTakesItsOutcomesAlong() throws {
        try Stage.with { stage in
            try stage.play(state: [
                .bind("a"), .state("settings", "a", #""push_when_desktop_online":false,"hold_s":4"#), .bind("late"),
            ])
            try stage.redis([
                Gateway.lease("gw"), Gateway.presence("late", "phone", gateway: "gw"),
                Gateway.presence("a", "pc", platform: "pc", gateway: "gw"),
            ])
            try stage.writeEvents([.message("m", to: ["a", "late"], conv: "g", type: "group")])
            _ = try stage.look(until: "the desktop has it") { !$0.targets(of: "m").isEmpty }
            try stage.writeState([.ack("a", "pc", ["m"])])
            _ = try stage.look(until: "the phone is pushed") { seen in
                seen.outcomes(of: "m").contains { $0.hasPrefix("a/phone accepted") }
            }
            stage.wait(.milliseconds(200))
            #expect(try stage.look().outcomes(of: "m").count == 2)
            stage.kill(try stage.worker)
            try stage.startWorker()
            try stage.settle()
            let report = flushed(stage)
            #expect(try reasons(report) == recorded(stage))
        }
    }

    @Test func reportsAreCountedOnceThroughAKill() throws {
        for milliseconds in [0, 10, 100, 900, 1_050] {
            try Stage.with { stage in
                let users = (0..<6).map { "u\($0)" }
                let seen = try stage.play(
                    state: users.map { .bind($0) }, events: users.map { .message("m-\($0)", to: [$0]) })
                let reports = try users.map { user -> Line in
                    told(
                        "open_report", user, try #require(seen.push(of: "m-\(user)")?.json["pid"]?.string), "m-\(user)")
                }
                stage.wait(.seconds(3))
                try stage.writeState(reports)
                stage.wait(.milliseconds(milliseconds))
                stage.kill(try stage.worker)
                try stage.startWorker()
                try stage.settle()
                let report = flushed(stage)
                #expect(report.total.opened == 6 && report.total.openRate == 1, "killed after \(milliseconds) ms")
            }
        }
    }

    @Test func aDrainLeavesNothingUncounted() throws {
        try Stage.with { stage in
            try stage.play(state: [.bind("a")])
            try stage.writeEvents((0..<10).map { .message("m\($0)", to: ["a"]) })
            stage.wait(.milliseconds(300))
            #expect(try stage.stop(try stage.worker))
            let before = counted(stage)
            #expect(try reasons(before) == recorded(stage), "counted before the worker has ended")
            try stage.startWorker()
            try stage.settle()
            #expect(flushed(stage).total.accepted == 10)
        }
    }

    /// The group never takes them from this worker, so that after a session it goes on with the counts that were refused.
    @Test func aWorkerThatKeepsAPartitionCountsOnAfterASessionWithoutALoss() throws {
        try Stage.with { stage in
            try stage.play(state: [.bind("a")], events: [.message("m", to: ["a"])])
            #expect(flushed(stage).total.accepted == 1)
            let fields = Self.words(stage.redis.inline("HGETALL c:t:{n}at"))
            let named = stride(from: 0, to: fields.count - 1, by: 2).filter { fields[$0].hasPrefix("im.events:") }
            for index in named {
                let position = fields[index + 1].drop { $0 != " " }
                try stage.redis(["HSET c:t:{n}at \(fields[index]) \"other\(position)\""])
            }
            try stage.writeEvents((0..<10).map { .message("m\($0)", to: ["a"]) })
            stage.wait(.seconds(5))
            #expect(stage.committedRecords(of: "im.events") == 1 && counted(stage).total.accepted == 1)
            stage.wait(.seconds(70))
            #expect(stage.committedRecords(of: "im.events") == 11 && counted(stage).total.accepted == 11)
            #expect(try stage.metric("carillon_stats_lost_total") == 0)
        }
    }

    /// The next worker counts them by their marks.
    @Test func recordsOfPartitionsThatAnotherWorkerCountsAreNotCommitted() throws {
        try Stage.with { stage in
            try stage.play(state: [.bind("a")], events: [.message("m", to: ["a"])])
            #expect(flushed(stage).total.accepted == 1)
            try stage.redis(["HSET c:t:{n}at \((0..<8).map { "im.events:\($0) other" }.joined(separator: " "))"])
            try stage.writeEvents((0..<10).map { .message("m\($0)", to: ["a"]) })
            stage.wait(.seconds(5))
            #expect(try stage.look().outcomes(of: "m9").count == 1)
            #expect(stage.committedRecords(of: "im.events") == 1)
            try stage.stop(try stage.worker)
            #expect(stage.committedRecords(of: "im.events") == 1)
            try stage.startWorker()
            try stage.settle()
            let report = flushed(stage)
            #expect(report.total.accepted == 11)
            #expect(stage.committedRecords(of: "im.events") == 11)
        }
    }

    /// Redis is full, or another kind of key is in the way.
    @Test(arguments: ["CONFIG SET maxmemory 1", "SET c:t:{n}at x"])
    func offsetsAreCommittedWhereNoNumbersCanBeWritten(spoiling: String) throws {
        try Stage.with { stage in
            try stage.play(state: [.bind("a")], events: [.message("m", to: ["a"])])
            #expect(flushed(stage).total.accepted == 1)
            if spoiling.hasPrefix("SET") { try stage.redis(["DEL c:t:{n}at"]) }
            try stage.redis([spoiling])
            try stage.writeEvents((0..<10).map { .message("m\($0)", to: ["a"]) })
            stage.wait(.seconds(3))
            #expect(stage.committedRecords(of: "im.events") == 11)
            #expect(try stage.look().outcomes(of: "m9").count == 1)
            try stage.redis(["CONFIG SET maxmemory 0"])
            let counted = flushed(stage).total.accepted
            #expect(counted == (spoiling.hasPrefix("CONFIG") ? 11 : 1))
        }
    }

    @Test func allWorkersCountIntoTheSameNumbers() throws {
        try Stage.with { stage in
            let users = (0..<20).map { "u\($0)" }
            try stage.play(state: users.map { .bind($0) }, events: users.map { .message("a-\($0)", to: [$0]) })
            let second = try stage.startWorker()
            try stage.play(events: users.map { .message("b-\($0)", to: [$0]) })
            try stage.stop(second)
            try stage.play(events: users.map { .message("c-\($0)", to: [$0]) })
            let report = flushed(stage)
            #expect(report.total.accepted == 60 && report.total.alerts == 60)
            #expect(try reasons(report) == recorded(stage))
        }
    }
}
