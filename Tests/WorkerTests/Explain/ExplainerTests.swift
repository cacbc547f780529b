// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import JSON
import Payload
import PushCore
import Redis
import Support
import Testing

@testable import Worker

/// Against a real redis-server; all times lie near `StateWorld.base`.
struct ExplainerTests {
    private static let token = "00ffaa11"

    private struct Setup {
        let world: StateWorld
        let store: StateReader
        let explainer: Explainer

        func end() async {
            await store.close()
            await world.end()
        }

        func explain(_ record: String) async throws -> [Explanation] {
            try await explainer.explain(Array(record.utf8), place: "line 1", at: .at(StateWorld.base + 1000))
                .explanations
        }
    }

    private func open(
        membersMax: Int = 20, app line: String = "", credentials: String = ConfigurationProblemTests.credentials
    ) async throws -> Setup {
        let world = try StateWorld()
        try await world.connect()
        let store = try StateReader(.single(RedisEndpoint(url: world.server.url)))
        try await store.open()
        let text =
            ConfigurationProblemTests.good.replacing(ConfigurationProblemTests.credentials, with: credentials)
            + "    \(line)\n"
        let configuration = try Configuration.read(Array(text.utf8), source: "f").get()
        return Setup(
            world: world, store: store, explainer: Explainer(configuration, store: store, membersMax: membersMax))
    }

    /// A record that the worker refuses because of the user's stored settings.
    @Test func aSettingsRecordWithoutAWindowGoesToTheDeadLetterTopic() async throws {
        let setup = try await open()
        let record = #"""
            {"v":1,"kind":"settings","app":"im","event_id":"e","sent_ms":\#(StateWorld.base),"uid":"bob","dnd":{"on":true}}
            """#
        let refused = try await setup.explain(record)
        #expect(refused.map { "\($0.verdict) \($0.reason)" } == ["dead_letter bad_event"])
        #expect(refused.first?.steps.map(\.number) == [1, 3])
        #expect(refused.first?.steps.last?.outcome.contains("$.dnd.start") == true)
        var settings = UserState.SettingsChange()
        settings.dndStart = 0
        settings.dndEnd = 60
        try await setup.world.change("bob", .settings(settings))
        #expect(try await setup.explain(record).map(\.verdict) == ["state_change"])
        // It changed nothing.
        #expect(try await setup.world.raw("HEXISTS", "c:u:{im:bob}", "dn") == 0)
        await setup.end()
    }

    private func bind(_ world: StateWorld, _ uid: String) async throws {
        let record = TokenRecord(
            hex: Self.token, environment: .production, topic: "com.example.im", type: .alert,
            boundMs: StateWorld.base)
        try await world.change(uid, .bind(.init(device: "phone", token: record, version: 1)))
    }

    private static let original = Message(
        msgID: "m", expireAtMs: .max, conversation: .init(id: "c", type: .p2p), from: .init(uid: "alice"), to: .init())

    private func message(
        to uids: String = #""to":{"uids":["bob"]},"#, type: String = "p2p", push: String = #"{"content":"hi"}"#
    ) -> String {
        """
        {"v":1,"kind":"message","app":"im","event_id":"e","sent_ms":\(StateWorld.base),"msg_id":"m",\(uids)\
        "conv":{"id":"c","type":"\(type)"},"from":{"uid":"alice","nick":"Al"},"push":\(push)}
        """
    }

    @Test func aBoundDeviceIsShownThePushThatItWouldGet() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        let before = try world.world.server.command("DBSIZE")
        let told = try #require(try await world.explain(message()).first)
        #expect(told.uid == "bob" && told.device == "phone" && told.route == .apns)
        #expect(told.verdict == "accepted" && told.reason == "ok")
        #expect(told.steps.map(\.number) == [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])
        let payload = try JSONTree(parsing: try #require(told.payload))
        #expect(payload["aps"]?["alert"]?["body"]?.string == "Al: hi")
        #expect(payload["aps"]?["badge"]?.int == 1)
        let headers = Dictionary(told.headers.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        #expect(headers["apns-topic"] == "com.example.im" && headers["apns-id"] == payload["pid"]?.string)
        // Asked again: nothing was claimed or counted.
        #expect(try await world.explain(message()).first == told)
        #expect(try world.world.server.command("DBSIZE") == before)
        await world.end()
    }

    @Test func `a device without alerts, a user's level and a snooze are said with their step`() async throws {
        let world = try await open(app: "title: nick")
        let token = TokenRecord(
            hex: Self.token, environment: .production, topic: "com.example.im", type: .alert, boundMs: StateWorld.base,
            showsAlerts: false)
        try await world.world.change("bob", .bind(.init(device: "phone", token: token, version: 1)))
        var told = try #require(try await world.explain(message(push: #"{"content":"hi","sms":true}"#)).first)
        #expect(told.device == "phone" && told.verdict == "suppressed" && told.reason == "alerts_off")
        #expect(
            told.steps.contains { $0.number == 11 && $0.outcome == "alerts_off" }
                && told.steps.contains { $0.name == "sms" })
        let other = TokenRecord(
            hex: "bb", environment: .production, topic: "com.example.im", type: .alert, boundMs: StateWorld.base)
        try await world.world.change("eve", .bind(.init(device: "phone", token: other, version: 1)))
        let pushed = try await world.explain(message(to: #""to":{"uids":["eve"]},"#)).first?.payload
        #expect(try JSONTree(parsing: try #require(pushed))["aps"]?["alert"]?["title"]?.string == "Al")
        var change = UserState.SettingsChange()
        change.snoozeUntilMs = StateWorld.base + 9000
        try await world.world.change("bob", .settings(change))
        told = try #require(try await world.explain(message()).first)
        #expect(told.device == nil && told.reason == "dnd")
        #expect(told.steps.first { $0.number == 9 }?.input.hasPrefix("snoozed until 2023-11-14T22:13:29.000Z") == true)
        change = UserState.SettingsChange()
        change.levels = [.p2p: .blocked]
        try await world.world.change("bob", .settings(change), at: 1)
        told = try #require(try await world.explain(message()).first)
        #expect(told.reason == "conv_muted")
        #expect(told.steps.first { $0.number == 8 }?.input == "level 5 of the user's settings, no mention")
        await world.end()
    }

    @Test(arguments: [("yphone", true), ("y", true), ("ytablet", false)])
    func aPushBehindAParkedOneIsSaidToWait(field: String, waits: Bool) async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        let base = StateWorld.base
        _ = try await world.world.raw("HSET", "c:u:{im:bob}", field, "2 \(base + 9000) \(base) \(base + 99_000) e0")
        let told = try #require(try await world.explain(message()).first)
        let order = told.steps.first { $0.name == "order" }
        #expect(order?.input.hasSuffix("for another 8000 ms") ?? false == waits)
        // It is sent in the end.
        #expect(told.verdict == "accepted" && told.steps.last?.name == "send")
        // The note's event has expired by then.
        _ = try await world.world.raw("HSET", "c:u:{im:bob}", field, "2 \(base + 9000) \(base) \(base + 500) e0")
        #expect(try await world.explain(message()).first?.steps.contains { $0.name == "order" } == false)
        await world.end()
    }

    /// A record for a later time is read as the worker would read it then.
    @Test func `a record of next week is explained for next week`() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        let weekMs: Int64 = 604_800_000
        let sentMs = Loop.wallMs() + weekMs
        let record = message().replacing("\"sent_ms\":\(StateWorld.base)", with: "\"sent_ms\":\(sentMs)")
        func expiration(at moment: Explainer.Moment) async throws -> String? {
            let told = try await world.explainer.explain(Array(record.utf8), place: "line 1", at: moment).explanations
                .first
            #expect(told?.verdict == "accepted")
            return told?.headers.first { $0.name == "apns-expiration" }?.value
        }
        let wanted = String((sentMs + 86_400_000) / 1000)
        #expect(try await expiration(at: .at(sentMs)) == wanted)
        #expect(try await expiration(at: .sent) == wanted)
        // By the worker's clock of now it was sent now.
        #expect(try await expiration(at: .now) != wanted)
        await world.end()
    }

    @Test func `explain names the 429 that a device waits for`() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        let (due, base) = (StateWorld.base + 9000, StateWorld.base)
        _ = try await world.world.raw("HSET", "c:u:{im:bob}", "yphone", "2 \(due) \(base) \(base + 99_000) e0")
        _ = try await world.world.raw("HSET", "c:u:{im:bob}", "zphone", "\(due)")
        let order = try await world.explain(message()).first?.steps.first { $0.name == "order" }
        #expect(order?.input.contains("429") == true && order?.input.contains("8000 ms") == true)
        await world.end()
    }

    @Test func `explain names the limit of background pushes`() async throws {
        let world = try await open(app: "limits: {background_per_hour: 2}")
        try await bind(world.world, "bob")
        func hour(_ push: String = #"{"silent":true}"#) async throws -> String? {
            let step = try await world.explain(message(push: push)).first?.steps.first { $0.name == "hour" }
            return step.map { "\($0.input): \($0.outcome)" }
        }
        #expect(try await hour()?.hasSuffix(" 2, background pushes in the device's hour 0: has a place") == true)
        #expect(try await hour(#"{"content":"hi"}"#) == nil)
        for (taken, outcome) in [(1, "has a place"), (2, "waits in carillon.parked for another 3590000 ms")] {
            let begin = StateWorld.base - 9_000
            _ = try await world.world.raw("HSET", "c:f:{im:bob}", "phone", "\(begin) \(taken) \(begin) 0 a b")
            #expect(try await hour()?.contains("device's hour \(taken): \(outcome)") == true)
        }
        _ = try await world.world.raw("HSET", "c:f:{im:bob}", "phone", "\(StateWorld.base - 3_600_000) 2 1 0 a")
        #expect(try await hour()?.contains("hour 0: has a place") == true)
        await world.end()
    }

    /// `badge: none`: only an alert that adds 1 for this recipient has `mutable-content`, and a revoke of one that this device got.
    @Test func explainSaysWhetherTheClientsExtensionSeesTheAlert() async throws {
        let world = try await open(app: "badge: none")
        try await bind(world.world, "bob")
        func aps(_ record: String) async throws -> JSONTree? {
            let bytes = try #require(try await world.explain(record).first?.payload)
            return try JSONTree(parsing: bytes)["aps"]
        }
        let counted = try await aps(message())
        #expect(counted?["mutable-content"]?.int == 1 && counted?["badge"] == nil)
        let uncounted = message(push: #"{"content":"hi","badge":false}"#)
        #expect(try await aps(uncounted)?["mutable-content"] == nil)
        func revoke(_ id: String) -> String {
            message().replacing("\"message\"", with: "\"revoke\"").replacing(
                "\"msg_id\":\"m\"", with: #""msg_id":"\#(id)","revoke":{"target_msg_id":"t"}"#)
        }
        #expect(try await aps(revoke("r"))?["mutable-content"] == nil)
        _ = try await world.world.claim(.message("bob", "t", "c", sent: StateWorld.base))
        #expect(try await aps(revoke("r"))?["mutable-content"] == nil)
        for (device, isSeen) in [("pad", false), ("phone", true)] {
            var journal = Journal()
            journal.append(
                Journal.Entry(
                    device: device, verdict: .accepted, reason: "ok", atMs: 1, traits: [.counts, .isAddedByClient]))
            var content: [UInt8] = []
            let subject = CountedSubject(app: "im", name: "", task: "")
            MarkCounts.write(journal, record: 1, subject, .alert, .direct) { content += $0 }
            try await world.world.finish(.message("bob", "t", "c", sent: StateWorld.base), saying: content)
            #expect((try await aps(revoke("r"))?["mutable-content"]?.int == 1) == isSeen)
        }
        // An earlier try counted; now the same message would not count.
        _ = try await world.world.claim(.message("bob", "m", "c", sent: StateWorld.base))
        #expect(try await aps(uncounted)?["mutable-content"]?.int == 1)
        await world.end()
    }

    @Test func aTokenIsNeverShown() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        let told = try #require(try await world.explain(message()).first)
        #expect(!told.steps.contains { $0.input.contains(Self.token) || $0.outcome.contains(Self.token) })
        #expect(told.steps.contains { $0.input.contains(TokenHash.short(Self.token)) })
        await world.end()
    }

    @Test func recipientsWithoutAPushAreExplained() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        let rows: [(String, String, String, Int?)] = [
            (message(push: #"{"enabled":false}"#), "suppressed", "msg_push_off", 7),
            (message(to: #""to":{"uids":["eve"]},"#), "suppressed", "no_token", 12),
            (message(to: #""expire_at_ms":\#(StateWorld.base + 1),"to":{"uids":["bob"]},"#), "expired", "expired", 2),
            (#"{"v":1,"kind":"message"}"#, "dead_letter", "bad_event", 1),
            (
                #"{"v":1,"kind":"read","app":"im","event_id":"r","sent_ms":1700000000000,"uid":"bob","conv_id":"c","up_to_ms":1700000000000}"#,
                "state_change", "ok", nil
            ),
        ]
        for (record, verdict, reason, step) in rows {
            let told = try await world.explain(record)
            #expect(told.map(\.verdict) == [verdict], "\(record)")
            #expect(told.map(\.reason) == [reason], "\(record)")
            #expect(told.first?.device == nil && told.first?.payload == nil)
            #expect(told.first?.steps.first { !$0.passes }?.number == step, "\(record)")
        }
        await world.end()
    }

    @Test func droppedUsersAndTheRowForNobodyAreShown() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        let dropped = message(to: #""to":{"uids":["alice","bob"],"exclude":["bob"]},"#)
        let told = try await world.explain(dropped)
        #expect(told.map(\.uid) == ["alice", "bob", ""] && told.allSatisfy { $0.verdict == "suppressed" })
        #expect(told.map(\.reason) == ["sender", "excluded", "no_recipients"])
        #expect(told.map { $0.steps.first { !$0.passes }?.number } == [4, 4, 12])
        let without = try await world.explain(message(to: "", type: "group"))
        #expect(without.map(\.uid) == [""] && without.map(\.reason) == ["no_recipients"], "a group without members")
        let one = try await world.explain(message(to: #""to":{"uids":["alice","bob"]},"#))
        #expect(one.map(\.reason) == ["sender", "ok"])
        await world.end()
    }

    @Test func tokensAreExplainedByTheirOwners() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        let both = try await world.explain(message(to: #""to":{"tokens":["ABAB","\#(Self.token)"]},"#))
        #expect(both.map(\.uid) == ["bob", ""] && both.map(\.reason) == ["ok", "no_token"])
        #expect(both.first?.device == "phone")
        let known = try await world.explain(message(to: #""to":{"tokens":["\#(Self.token)"]},"#))
        #expect(known.map(\.reason) == ["ok"])
        let expired = try await world.explain(
            message(to: #""expire_at_ms":\#(StateWorld.base + 1),"to":{"tokens":["abab","\#(Self.token)"]},"#))
        #expect(expired.map(\.uid) == [""] && expired.map(\.reason) == ["expired"], "no owner is looked up")
        let excluded = try await world.explain(
            message(to: #""to":{"tokens":["\#(Self.token)"],"exclude":["bob"]},"#))
        #expect(excluded.map(\.reason) == ["excluded", "no_recipients"])
        await world.end()
    }

    @Test func `a scheduled message is explained as of its time, and its revoke before it shows no alert`() async throws
    {
        let world = try await open()
        try await bind(world.world, "bob")
        let atMs = StateWorld.base + 86_400_000
        let told = try await world.explain(message(push: #"{"content":"x","send_at_ms":\#(atMs)}"#))
        #expect(told.map { "\($0.verdict) \($0.reason)" } == ["accepted ok"])
        #expect(told.first?.steps.first?.outcome.hasPrefix("well formed; scheduled until 20") ?? false)
        let revoke = event(
            "revoke",
            #""msg_id":"r","conv":{"id":"c","type":"p2p"},"from":{"uid":"alice"},"to":{"uids":["bob"]},"revoke":{"target_msg_id":"m"}"#
        )
        try await world.world.raw("SET", "c:i:{im:m}", "\n\(atMs)\nid")
        let early = try await world.explain(revoke)
        #expect(early.map { "\($0.verdict) \($0.reason)" } == ["suppressed revoked"])
        try await world.world.raw("SET", "c:i:{im:m}", "\n\(StateWorld.base)")
        let late = try await world.explain(revoke)
        #expect(late.map { "\($0.verdict) \($0.reason)" } == ["accepted ok"])
        await world.end()
    }

    /// Every kind of record: verdict and reason of each line, and the numbers of the steps that led to the first.
    @Test func everyKindOfRecordIsExplained() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        for (type, device, activity) in [("start", "phone", nil), ("activity", "phone", "order")]
            as [(String, String, String?)]
        {
            let kind = try #require(TokenRecord.Kind(rawValue: type))
            let record = TokenRecord(
                hex: "cc\(type.utf8.count)0", environment: .production, topic: "com.example.im", type: kind,
                activityID: activity, boundMs: StateWorld.base)
            try await world.world.change("bob", .bind(.init(device: device, token: record, version: 1)))
        }
        try await world.world.raw("HSET", "g:{im:c}", "bob", "0", "alice", "0")
        let all = [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
        let activity = [1, 2, 5, 12, 13, 14, 15, 16]
        var rows: [(String, [String], [Int])] = [
            (message(), ["accepted ok"], all),
            (message(to: "", type: "group"), ["accepted ok", "suppressed sender"], all),
            (message(to: "", type: "ultra"), ["accepted ok", "suppressed sender"], all),
            (message(type: "system"), ["accepted ok"], all),
            (message(push: #"{"silent":true}"#), ["accepted ok"], all),
            (
                message(push: #"{"content":"x","voip":true,"sms":true}"#), ["suppressed no_token"],
                Array(all.prefix(9)) + [12, 17]
            ),
            (
                event(
                    "revoke",
                    #""msg_id":"r","conv":{"id":"c","type":"p2p"},"from":{"uid":"alice"},"to":{"uids":["bob"]},"revoke":{"target_msg_id":"m"}"#
                ),
                ["accepted ok"], Array(all.prefix(9)) + [10] + all.suffix(6)
            ),
            (live("start"), ["accepted ok"], activity), (live("update"), ["accepted ok"], activity),
            (live("end"), ["accepted ok"], activity),
            (
                event(
                    "live_activity", #""la":{"activity_id":"other","event":"update","state":{},"channel":"dHN0"}"#),
                ["accepted ok"], [1, 2, 5, 13, 14, 15, 16]
            ),
            (
                event(
                    "live_activity", #""to":{"uids":["bob"]},"la":{"activity_id":"other","event":"update","state":{}}"#),
                ["suppressed no_token"], [1, 2, 5, 12]
            ),
            (#"{"v":1,"kind":"dance"}"#, ["dead_letter bad_event"], [1]),
        ]
        let states: [(String, String)] = [
            (
                "bind",
                #""token":{"device":"d","token":"aa","env":"production","topic":"t","type":"alert","bind_ver":1}"#
            ),
            ("unbind", #""token":{"device":"d","token":"aa","bind_ver":1}"#), ("settings", #""lang":"en""#),
            ("mute", #""conv_id":"c","level":5"#), ("read", #""conv_id":"c","up_to_seq":1"#),
            ("badge_report", #""device":"d","value":1,"client_ms":1700000000000"#),
            ("ack", #""device":"d","conn_epoch":1,"msg_ids":["m"]"#),
            ("open_report", #""device":"d","pid":"0000","opened_ms":1700000000000"#),
            ("arrived_report", #""device":"d","pid":"0000","arrived_ms":1700000000000,"msg_id":"m""#),
            ("forget", #""x":1"#),
        ]
        for (kind, fields) in states {
            rows.append((event(kind, #""uid":"bob",\#(fields)"#), ["state_change ok"], [1, 3]))
        }
        for (record, ends, steps) in rows {
            let told = try await world.explain(record)
            #expect(told.map { "\($0.verdict) \($0.reason)" }.sorted() == ends, "\(record)")
            let first = told.first { "\($0.verdict) \($0.reason)" == ends[0] }
            #expect(first?.steps.map(\.number) == steps, "\(record)")
            #expect(told.allSatisfy { ($0.payload != nil) == ($0.route == .apns) }, "\(record)")
        }
        await world.end()
    }

    private func event(_ kind: String, _ fields: String) -> String {
        #"{"v":1,"kind":"\#(kind)","app":"im","event_id":"e-\#(kind)","sent_ms":\#(StateWorld.base),\#(fields)}"#
    }

    private func live(_ action: String) -> String {
        let start = #","attributes_type":"T","attributes":{},"alert":"a""#
        return event(
            "live_activity",
            #""to":{"uids":["bob"]},"la":{"activity_id":"order","event":"\#(action)","state":{"n":1}"#
                + (action == "start" ? start : "") + "}")
    }

    @Test func anUpdateWithoutRecipientsIsExplainedForAllWhoBoundTheActivity() async throws {
        let world = try await open(membersMax: 2)
        let update = event("live_activity", #""la":{"activity_id":"order","event":"update","state":{"n":1}}"#)
        #expect(try await world.explain(update).map(\.reason) == ["no_recipients"])
        for (index, uid) in ["cora", "bob", "ann"].enumerated() {
            let record = TokenRecord(
                hex: "aa\(index)0", environment: .production, topic: "com.example.im", type: .activity,
                activityID: "order", boundMs: StateWorld.base)
            try await world.world.change(uid, .bind(.init(device: "phone", token: record, version: 1)))
        }
        let told = try await world.explain(update)
        #expect(told.map { "\($0.uid) \($0.verdict)" } == ["ann accepted", "bob accepted"])
        await world.end()
    }

    @Test func aCoalescedPushIsRecordedAsCoalesced() async throws {
        let world = try await open(app: "coalesce: {window_s: 5}")
        try await bind(world.world, "bob")
        let told = try #require(try await world.explain(message()).first)
        let step = try #require(told.steps.first { $0.name == "coalescing" })
        #expect(step.number == 15 && step.input.contains("5.0 s") && step.outcome.contains("is merged"))
        let forced = try #require(
            try await world.explain(message(push: #"{"content":"x","force":{"mode":"all"}}"#)).first)
        #expect(forced.steps.first { $0.name == "coalescing" }?.outcome == "sent at once: forced")
        await world.end()
    }

    @Test func messagesHeldByDNDAreInTheDigest() async throws {
        let world = try await open(app: "dnd_digest: true")
        try await bind(world.world, "bob")
        var settings = UserState.SettingsChange()
        settings.dndOn = true
        settings.dndStart = 0
        settings.dndEnd = 1439
        settings.dndZone = "UTC"
        try await world.world.change("bob", .settings(settings))
        let told = try #require(try await world.explain(message()).first)
        #expect(told.reason == "dnd" && told.steps.last?.name == "digest")
        #expect(told.steps.last?.input == "DND ends 2023-11-14T23:59:00.000Z")
        await world.end()
    }

    @Test func aDeniedMessageShowsEveryStepThatDenies() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        try await world.world.change("bob", .mute(conversation: "c", level: .blocked, untilMs: nil))
        let told = try #require(try await world.explain(message(push: #"{"content":"x","enabled":false}"#)).first)
        #expect(told.reason == "msg_push_off")
        #expect(told.steps.filter { !$0.passes }.map(\.outcome) == ["msg_push_off", "conv_muted"])
        await world.end()
    }

    @Test func aBadRecordIsReportedWithPathAndByte() async throws {
        let world = try await open()
        let told = try await world.explain(#"{"v":1,"kind":"message","app":7}"#)
        #expect(told.first?.steps.last?.outcome.contains("at $.app, byte 30") == true)
        await world.end()
    }

    @Test func aFinishedMessageIsADuplicate() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        _ = try await world.world.text("SET", "c:d3:{im:bob}mm", "f")
        #expect(try await world.explain(message()).map(\.verdict) == ["duplicate"])
        await world.end()
    }

    @Test func aFinishedMessageIsADuplicateAfterItsExpiryToo() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        try await world.world.raw("HSET", "g:{im:c}", "bob", "0")
        let late = #""expire_at_ms":\#(StateWorld.base + 1),"#
        for (uid, to, type) in [("bob", #""to":{"uids":["bob"]},"#, "p2p"), ("", "", "group")] {
            let record = message(to: late + to, type: type)
            #expect(try await world.explain(record).map(\.verdict) == ["expired"], "\(type)")
            _ = try await world.world.text("SET", "c:d\(uid.utf8.count):{im:\(uid)}mm", "f")
            let told = try await world.explain(record)
            #expect(told.map(\.verdict) == ["duplicate"] && told.first?.uid == uid, "\(type)")
        }
        await world.end()
    }

    @Test func anExpiredRevokeThatLowersBadgesIsExplainedPerMember() async throws {
        let world = try await open()
        try await world.world.raw("HSET", "g:{im:c}", "bob", "0")
        func revoke(_ badge: String) -> String {
            event(
                "revoke",
                #""expire_at_ms":\#(StateWorld.base + 1),"msg_id":"r","conv":{"id":"c","type":"group"},"from":{"uid":"alice"},"revoke":{"target_msg_id":"m","badge":"\#(badge)"}"#
            )
        }
        #expect(try await world.explain(revoke("decrease")).map { "\($0.uid) \($0.verdict)" } == ["bob expired"])
        #expect(try await world.explain(revoke("keep")).map { "\($0.uid) \($0.verdict)" } == [" expired"])
        await world.end()
    }

    /// Before the message at `base` and its revoke at `base + 5`: what the client reported, what was counted; and the badge
    /// that the push then carries.
    private struct BadgeRow {
        var report: (value: Int64, clientMs: Int64)?
        var counted: [(id: String, sent: Int64)] = []
        var isRevoke = false
        /// Nil: the push carries none.
        var badge: Int64?
    }

    @Test func theBadgeIsTheOneThatTheClaimGives() async throws {
        let world = try await open()
        let rows = [
            BadgeRow(badge: 1),
            BadgeRow(report: (4, -10), badge: 5),
            // The client's total holds the message already.
            BadgeRow(report: (4, 10), badge: 4), BadgeRow(report: (0, 10), badge: nil),
            BadgeRow(report: (4, 0), badge: 4), BadgeRow(report: (4, -1), counted: [("x", -5), ("y", 5)], badge: 6),
            BadgeRow(counted: [("m", 0)], badge: 1),
            BadgeRow(counted: [("x", 1)], isRevoke: true, badge: 1),
            BadgeRow(counted: [("m", 0), ("x", 1)], isRevoke: true, badge: 1),
            // The alert of a revoke that lowered the number carries 0 too.
            BadgeRow(counted: [("m", 0)], isRevoke: true, badge: 0),
            BadgeRow(report: (4, 2), counted: [("m", 0)], isRevoke: true, badge: 3),
            BadgeRow(report: (4, 8), counted: [("m", 0)], isRevoke: true, badge: 4),
        ]
        for (number, row) in rows.enumerated() {
            let uid = "u\(number)"
            let token = TokenRecord(
                hex: "aa0\(number % 10)0\(number / 10)", environment: .production, topic: "com.example.im",
                type: .alert, boundMs: StateWorld.base)
            try await world.world.change(uid, .bind(.init(device: "phone", token: token, version: 1)))
            for (id, sent) in row.counted {
                _ = try await world.world.claim(.message(uid, id, "c", sent: StateWorld.base + sent))
            }
            if let report = row.report {
                try await world.world.change(
                    uid,
                    .badgeReport(device: "d", value: report.value, clientMs: StateWorld.base + report.clientMs))
            }
            let to = #""to":{"uids":["\#(uid)"]},"#
            let revoke = event(
                "revoke",
                to + #""msg_id":"r","conv":{"id":"c","type":"p2p"},"from":{"uid":"alice"},"#
                    + #""revoke":{"target_msg_id":"m"}"#
            ).replacing(#""sent_ms":\#(StateWorld.base)"#, with: #""sent_ms":\#(StateWorld.base + 5)"#)
            let told = try #require(try await world.explain(row.isRevoke ? revoke : message(to: to)).first)
            let payload = try JSONTree(parsing: try #require(told.payload, "row \(number)"))
            #expect(payload["aps"]?["badge"]?.int == row.badge, "row \(number)")
            let sent = StateWorld.base + (row.isRevoke ? 5 : 0)
            let claim = try await world.world.claim(
                row.isRevoke
                    ? .revoke(uid, "r", "c", sent: sent, target: "m", badge: .decrease)
                    : .message(uid, "m", "c", sent: sent))
            #expect(claim.badge == row.badge ?? 0, "row \(number)")
        }
        await world.end()
    }

    /// A live phone with a bound token, by strategy 4: the push, and what its connection gets.
    @Test func withStrategyFourTheLiveDeviceGetsTheMessageThoughNothingIsPushed() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        try await world.world.raw("HSET", "p:{im:bob}", "phone", "fg,ios,g1,7,3,\(StateWorld.base),-,-,-")
        _ = try await world.world.text("SET", "gw:{g1}", "7")
        let large = String(repeating: "x", count: 4100)
        let pushed = try #require(
            try await world.explain(message(push: #"{"content":"x","strategy":4}"#)).first)
        #expect(pushed.route == .apns && pushed.verdict == "accepted")
        #expect(
            pushed.steps.last?.outcome.hasSuffix("a copy by long connection with pushed true and alert false") == true)
        let told = try await world.explain(message(push: #"{"content":"x","strategy":4,"aps":{"big":"\#(large)"}}"#))
        #expect(told.map { "\($0.route) \($0.verdict) \($0.reason)" } == ["connection suppressed payload_too_large"])
        #expect(told.first?.payload == nil)
        #expect(
            told.first?.steps.last?.outcome
                == "not pushed; the message goes by long connection with pushed false, alert true")
        try await world.world.raw("DEL", "c:o:{im:\(Self.token)}")
        let moved = try await world.explain(message(push: #"{"content":"x","strategy":4}"#))
        #expect(moved.map { "\($0.route) \($0.verdict) \($0.reason)" } == ["connection suppressed token_moved"])
        await world.end()
    }

    /// The conversation is open on the screen, or the message is a silent one.
    @Test func theCopyOfAFailedPushAlertsOnlyWhereTheConnectionMay() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        _ = try await world.world.text("SET", "gw:{g1}", "7")
        let large = #""payload":{"big":"\#(String(repeating: "中", count: 1500))"}"#
        for (conversation, more) in [("c", ""), ("-", #""silent":true,"#)] {
            let push = #"{"content":"x","strategy":4,\#(more)\#(large)}"#
            try await world.world.raw(
                "HSET", "p:{im:bob}", "phone", "fg,ios,g1,7,3,\(StateWorld.base),-,\(conversation),-")
            let told = try await world.explain(message(push: push))
            #expect(
                told.first?.steps.last?.outcome
                    == "not pushed; the message goes by long connection with pushed false, alert false")
        }
        await world.end()
    }

    /// Delivered and acknowledged by an earlier try, and by now without any way; by strategy 3 with one that leads nowhere.
    @Test func anAckOfAnEarlierTryCountsAsReached() async throws {
        let world = try await open()
        _ = try await world.world.text("SET", "c:d3:{im:bob}mm", "c")
        try await world.world.raw("HSET", "c:k:{im:bob}", "m", "1 a5:phone")
        let push = #"{"content":"x","sms":true,"strategy":3}"#
        for hasToken in [false, true] {
            if hasToken { try await bind(world.world, "bob") }
            let told = try await world.explain(message(push: push))
            #expect(told.map { "\($0.device ?? "-") \($0.verdict) \($0.reason)" } == ["phone online acked"])
            #expect(told.first?.steps.contains { $0.name == "sms" } == false)
        }
        await world.end()
    }

    @Test func thePushOfAnEarlierTryIsShown() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        try await world.world.raw("HSET", "p:{im:bob}", "phone", "fg,ios,g1,7,3,\(StateWorld.base),-,-,-")
        _ = try await world.world.text("SET", "gw:{g1}", "7")
        _ = try await world.world.text("SET", "c:d3:{im:bob}mm", "ca5:phone")
        for (strategy, isTold) in [(1, false), (4, true)] {
            let told = try await world.explain(message(push: #"{"content":"x","strategy":\#(strategy)}"#))
            #expect(told.map { "\($0.device ?? "-") \($0.verdict)" } == ["phone duplicate"])
            let copy = "a copy by long connection with pushed true and alert false"
            #expect((told.first?.steps.last?.outcome == copy) == isTold)
        }
        await world.end()
    }

    @Test func aRevokedMessageAlertsByNoWay() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        _ = try await world.world.claim(
            .revoke("bob", "r", "c", sent: StateWorld.base + 5, target: "m", badge: .decrease))
        #expect(try await world.explain(message()).map { "\($0.route) \($0.reason)" } == ["none revoked"])
        try await world.world.raw("HSET", "p:{im:bob}", "phone", "fg,ios,g1,7,3,\(StateWorld.base),-,-,-")
        _ = try await world.world.text("SET", "gw:{g1}", "7")
        for strategy in [1, 4] {
            let told = try await world.explain(message(push: #"{"content":"x","strategy":\#(strategy)}"#))
            #expect(told.map { "\($0.route) \($0.verdict) \($0.reason)" } == ["connection online ok"])
            #expect(told.first?.steps.last?.input == "alert false")
        }
        await world.end()
    }

    @Test func aRevokeSaysWhetherItLowersTheBadge() async throws {
        let world = try await open(app: "profile: wps\n    clear_on_read: true")
        try await bind(world.world, "bob")
        let revoke = event(
            "revoke",
            #""to":{"uids":["bob"]},"msg_id":"r","conv":{"id":"c","type":"p2p"},"from":{"uid":"alice"},"revoke":{"target_msg_id":"m"}"#
        )
        for isCounted in [false, true] {
            if isCounted { _ = try await world.world.claim(.message("bob", "m", "c", sent: StateWorld.base - 5)) }
            let told = try #require(try await world.explain(revoke).first)
            let payload = try JSONTree(parsing: try #require(told.payload))
            #expect(payload["message"]?["params"]?["corner_mark_decrease"]?.bool == (isCounted ? true : nil))
            let step = try #require(told.steps.first { $0.name == "revoke" })
            #expect(
                step.outcome
                    == (isCounted
                        ? "lowers the badge; it is 0, and is sent to the devices that were pushed"
                        : "the badge stays: no counted and unread message is revoked; it is 0"))
        }
        await world.end()
    }

    @Test func workOfAnEarlierTryIsNotRepeated() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        let pad = TokenRecord(
            hex: "00ffaa22", environment: .production, topic: "com.example.im", type: .alert,
            boundMs: StateWorld.base)
        try await world.world.change("bob", .bind(.init(device: "pad", token: pad, version: 1)))
        _ = try await world.world.text("SET", "c:d3:{im:bob}mm", "ca3:pad")
        try await world.world.raw("HSET", "c:k:{im:bob}", "m", "1 a5:phone")
        let told = try await world.explain(message()).map {
            "\($0.device ?? "-") \($0.route) \($0.verdict) \($0.reason)"
        }
        #expect(told.sorted() == ["pad none duplicate duplicate", "phone none online acked"])
        // What was pushed is the verdict, though nothing would be pushed now.
        let off = try await world.explain(message(push: #"{"enabled":false}"#)).map {
            "\($0.device ?? "-") \($0.verdict)"
        }
        #expect(off == ["pad duplicate", "phone online"])
        await world.end()
    }

    @Test func theCredentialIsTheOneThatTheWorkerChooses() async throws {
        let key = ConfigurationProblemTests.credentials
        let world = try await open(credentials: "{cert: {certificate_file: c.p12}, key: \(key), other: \(key)}")
        let rows: [(TokenRecord.Kind, String?, String)] = [
            (.alert, nil, "cert"), (.alert, "other", "other"), (.alert, "none", "cert"), (.start, nil, "key"),
            (.start, "cert", "key"), (.start, "other", "other"),
        ]
        for (number, (kind, name, chosen)) in rows.enumerated() {
            let uid = "u\(number)"
            let record = TokenRecord(
                hex: "bb0\(number)", environment: .production, topic: "com.example.im", type: kind, credential: name,
                boundMs: StateWorld.base)
            try await world.world.change(uid, .bind(.init(device: "phone", token: record, version: 1)))
            let told = try await world.explain(
                kind == .alert
                    ? message(to: #""to":{"uids":["\#(uid)"]},"#) : live("start").replacing("bob", with: uid))
            #expect(told.first?.steps.last?.input.hasSuffix("credential \(chosen)") == true, "row \(number)")
        }
        await world.end()
    }

    @Test func aLiveActivityWithoutAProviderKeyIsRefused() async throws {
        let world = try await open(credentials: "{certificate_file: c.p12}")
        let record = TokenRecord(
            hex: "bb00", environment: .production, topic: "com.example.im", type: .start, boundMs: StateWorld.base)
        try await world.world.change("bob", .bind(.init(device: "phone", token: record, version: 1)))
        let told = try await world.explain(live("start"))
        #expect(told.map { "\($0.route) \($0.verdict) \($0.reason)" } == ["none rejected Unfit"])
        #expect(told.first?.payload == nil)
        await world.end()
    }

    @Test func noSMSIsAskedForWhileADeviceIsLive() async throws {
        let world = try await open()
        let record = message(push: #"{"content":"x","strategy":2,"sms":true}"#)
        #expect(try await world.explain(record).first?.steps.last?.name == "sms")
        try await world.world.raw("HSET", "p:{im:bob}", "phone", "fg,ios,g1,7,3,\(StateWorld.base),-,-,-")
        _ = try await world.world.text("SET", "gw:{g1}", "7")
        let told = try await world.explain(record)
        #expect(told.map(\.reason) == ["no_token"] && told.first?.steps.last?.name != "sms")
        await world.end()
    }

    /// 6 seeds, 4 users each with facts in any order and with repeats: before each claim the push is explained.
    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func inAnyStateTheBadgeIsTheOneThatTheClaimGives(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let world = try await open()
        var compared = 0
        for round in 0..<4 {
            let uid = "u\(round)"
            let token = TokenRecord(
                hex: "cc0\(round)", environment: .production, topic: "com.example.im", type: .alert,
                boundMs: StateWorld.base)
            try await world.world.change(uid, .bind(.init(device: "phone", token: token, version: 1)))
            let events = BadgeLawTests.events(&random)
            let again = events.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }
            for event in (events + again).shuffled(using: &random) {
                guard let (record, request) = claimed(event, by: uid) else {
                    try await BadgeLawTests.apply(event, to: uid, in: world.world)
                    continue
                }
                let told = try #require(try await world.explain(record).first)
                let claim = try await world.world.claim(request)
                #expect((told.reason == "ok") == !(claim.isRead || claim.isRevoked), "seed \(seed) \(event)")
                guard let payload = told.payload else { continue }
                let badge = try JSONTree(parsing: payload)["aps"]?["badge"]?.int ?? 0
                #expect(badge == claim.badge, "seed \(seed) round \(round) \(event)")
                compared += 1
            }
        }
        #expect(compared > 0)
        await world.end()
    }

    /// An event as a record, and as the claim of it; nil: it is no claim.
    private func claimed(_ event: BadgeEvent, by uid: String) -> (record: String, request: ClaimRequest)? {
        func record(_ kind: String, _ id: String, _ conversation: String, _ sent: Int64, _ more: String) -> String {
            #"{"v":1,"kind":"\#(kind)","app":"im","event_id":"e","sent_ms":\#(sent),"msg_id":"\#(id)","#
                + #""to":{"uids":["\#(uid)"]},"conv":{"id":"\#(conversation)","type":"p2p"},"#
                + #""from":{"uid":"alice"},\#(more)}"#
        }
        switch event {
        case .message(let id, let conversation, let sent, let seq):
            let more = #""push":{"content":"hi"}"# + (seq.map { #","server_seq":\#($0)"# } ?? "")
            return (
                record("message", id, conversation, sent, more),
                .message(uid, id, conversation, sent: sent, seq: seq)
            )
        case .revoke(let id, let conversation, let sent, let target, let badge):
            let more = #""revoke":{"target_msg_id":"\#(target)","badge":"\#(badge.rawValue)"}"#
            return (
                record("revoke", id, conversation, sent, more),
                .revoke(uid, id, conversation, sent: sent, target: target, badge: badge)
            )
        case .read, .report: return nil
        }
    }

    @Test func aRevokeIsExplainedWithItsOriginalsCollapseID() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        let revoke = message(push: #"{"collapse_id":"its own"}"#).replacing("\"message\"", with: "\"revoke\"")
            .replacing(
                "\"msg_id\":\"m\"", with: #""msg_id":"r","revoke":{"target_msg_id":"m"}"#)
        func collapseID() async throws -> String? {
            try await world.explain(revoke).first?.headers.first { $0.name == "apns-collapse-id" }?.value
        }
        // Nothing is known of the original: the revoke has its own.
        #expect(try await collapseID() == "its own")
        // The original chose none, so it had the one that follows from its id.
        _ = try await world.world.claim(.message("bob", "m", "c", sent: StateWorld.base))
        let original = String(decoding: CollapseID.choose(Self.original, profile: .nim), as: UTF8.self)
        #expect(try await collapseID() == original && original.utf8.count == 32)
        _ = try await world.world.text("SET", "c:i:{im:m}", "chosen")
        #expect(try await collapseID() == "chosen")
        await world.end()
    }

    @Test func aTokenThatMovedOnIsNotPushedTo() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        try await world.world.raw("DEL", "c:o:{im:\(Self.token)}")
        let told = try #require(try await world.explain(message()).first)
        #expect(told.verdict == "suppressed" && told.reason == "token_moved" && told.payload == nil)
        await world.end()
    }

    @Test func aPresenceCountsOnlyUnderALeaseOfItsEpoch() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        try await world.world.raw(
            "HSET", "p:{im:bob}", "phone", "fg,ios,g1,7,3,\(StateWorld.base),-,-,-")
        let void = try #require(try await world.explain(message()).first)
        #expect(void.route == .apns)
        #expect(void.steps.contains { $0.number == 11 && $0.input.contains("g1 holds no lease") })
        _ = try await world.world.text("SET", "gw:{g1}", "7")
        let live = try #require(try await world.explain(message()).first)
        #expect(live.route == .connection && live.verdict == "online" && live.reason == "acked")
        await world.end()
    }

    @Test func aMutedUsersLiveDeviceStillGetsTheMessage() async throws {
        let world = try await open()
        try await bind(world.world, "bob")
        try await world.world.change("bob", .mute(conversation: "c", level: .blocked, untilMs: nil))
        try await world.world.raw("HSET", "p:{im:bob}", "phone", "fg,ios,g1,7,3,\(StateWorld.base),-,-,-")
        _ = try await world.world.text("SET", "gw:{g1}", "7")
        let told = try await world.explain(message())
        #expect(told.map(\.route) == [.none, .connection])
        #expect(told.map(\.device) == [nil, "phone"])
        #expect(told.allSatisfy { $0.verdict == "suppressed" && $0.reason == "conv_muted" })
        await world.end()
    }

    @Test func aGroupIsScannedUpToTheBoundAndSaysSo() async throws {
        let world = try await open(membersMax: 3)
        for member in 0..<5 { try await world.world.raw("HSET", "g:{im:c}", "u\(member)", "0") }
        let record = Array(message(to: "", type: "group").utf8)
        let report = try await world.explainer.explain(record, place: "line 1", at: .sent)
        #expect(report.explanations.count == 3 && report.isCut)
        await world.end()
    }

    @Test func aReaderSaysAtOnceWhenRedisIsAway() async throws {
        let store = try StateReader(.single(RedisEndpoint(url: "unix:///nowhere/redis.sock")))
        await #expect(throws: RedisFault(.unreachable)) { try await store.open() }
        await store.close()
    }
}
