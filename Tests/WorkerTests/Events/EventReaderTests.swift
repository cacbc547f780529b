// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore
import Testing
import Worker

struct EventReaderTests {
    private func read(_ record: String, _ topic: RecordClass = .events) throws -> Event {
        try EventReader(apps: ["im"]).read(Array(record.utf8), of: topic)
    }

    private func message(_ extra: String) throws -> Message {
        let event = try read(BadRecordTests.message(extra))
        guard case .message(let shared) = event.body else { throw Mismatch() }
        let message = shared.value
        return message
    }

    private func state(_ record: String) throws -> UserState.Change {
        guard case .userState(let state) = try read(record, .userState).body else { throw Mismatch() }
        #expect(state.uid == "u")
        return state.change
    }

    struct Mismatch: Error {}

    @Test func aBareMessageHasTheDefaults() throws {
        let message = try message("")
        #expect(message.msgID == "m")
        #expect(message.expireAtMs == 1_700_000_000_000 + 86_400_000)
        #expect(message.conversation == Conversation(id: "c", type: .p2p))
        #expect(message.to.uids == ["b"])
        #expect(message.mention == nil)
        #expect(message.push.enabled && message.push.prefix && message.push.badge)
        #expect(!message.push.silent && !message.push.voip && !message.push.sms && !message.push.forceDetail)
        #expect(message.push.force == .init())
        #expect(message.push.priority == .high)
        #expect(message.push.strategy == nil)
    }

    @Test func devicesAndTokensAreRead() throws {
        let devices = try message(#""to":{"uids":["b"],"devices":["d1","d2"]}"#)
        #expect(devices.to.limit == DeviceLimit(devices: ["d1", "d2"]))
        let tokens = try message(#""to":{"tokens":["ABcd","00"],"exclude":["x"],"devices":null}"#)
        #expect(tokens.to.uids == nil && tokens.to.exclude == ["x"])
        #expect(tokens.to.limit == DeviceLimit(tokens: ["abcd", "00"]), "in lower case, as a bind keeps them")
        #expect(try message("").to.limit == nil)
    }

    @Test func everyFieldOfAMessageIsRead() throws {
        let message = try message(
            #"""
            "server_seq":9,"expire_at_ms":1700000000077,"conv":{"id":"g","type":"ultra"},
            "from":{"uid":"a","nick":"小明","device":"d1"},"to":{"uids":["b","c"],"exclude":["x"]},
            "mention":{"all":true,"uids":["b"]},"type_name":"RC:TxtMsg","custom":true,
            "push":{"enabled":false,"title":"T","content":"C","prefix":false,"badge":false,
            "force":{"mode":"list","uids":["b"],"content":"F"},"force_detail":true,
            "payload":{"n":1.50,"n2":123456789012345678901,"x":[null,true,"s"]},"aps":{"sound":"a.caf"},"profile":"rc",
            "sound":"s","thread_id":"t","category":"k","interruption":"active","collapse_id":"z","silent":true,
            "voip":true,"priority":"low","strategy":4,"sms":true,
            "subtitle":"S","image":"https://a.example/1","task_id":"k1","mutable":false,
            "template":{"id":"t1","args":{"a":"1","b":null}}},"unknown":{"a":[1]}
            """#)
        #expect(message.serverSeq == 9)
        #expect(message.expireAtMs == 1_700_000_000_077)
        #expect(message.conversation == Conversation(id: "g", type: .ultra))
        #expect(message.from == Message.Sender(uid: "a", nick: "小明", device: "d1"))
        #expect(message.to.uids == ["b", "c"])
        #expect(message.to.exclude == ["x"])
        #expect(message.mention == Message.Mention(all: true, uids: ["b"]))
        #expect(message.typeName == "RC:TxtMsg")
        #expect(message.isCustomType)
        let push = message.push
        #expect(
            !push.enabled && !push.prefix && !push.badge && push.forceDetail && push.silent && push.voip && push.sms)
        #expect(push.title == "T" && push.content == "C")
        #expect(push.force == .init(mode: .list, uids: ["b"], content: "F"))
        #expect(
            push.payload
                == .object([
                    .init("n", .number("1.50")), .init("n2", .number("123456789012345678901")),
                    .init("x", .array([.null, .bool(true), .string("s")])),
                ]))
        #expect(push.aps == .object([.init("sound", .string("a.caf"))]))
        #expect(push.profile == .rc && push.priority == .low && push.strategy == .apnsThenConnection)
        #expect(push.sound == "s" && push.threadID == "t" && push.category == "k" && push.interruption == "active")
        #expect(push.collapseID == "z")
        #expect(push.subtitle == "S" && push.image == "https://a.example/1" && push.taskID == "k1" && !push.isMutable)
        #expect(push.template == .init(id: "t1", args: [UTF8Key("a"): "1"]))
    }

    @Test func `a scheduled message counts as sent at its time, and its life begins then`() throws {
        func event(_ json: String) throws -> (sendAtMs: Int64?, sentMs: Int64, expireAtMs: Int64) {
            let event = try read(BadRecordTests.message(json))
            guard case .message(let message) = event.body else { throw Mismatch() }
            return (event.sendAtMs, event.sentMs, message.value.expireAtMs)
        }
        let (sent, day): (Int64, Int64) = (1_700_000_000_000, 86_400_000)
        let week = try event(#""push":{"send_at_ms":\#(sent + 7 * day)}"#)
        #expect(week == (sent + 7 * day, sent + 7 * day, sent + 8 * day))
        let given = try event(#""expire_at_ms":\#(sent + 9),"push":{"send_at_ms":\#(sent + 5)}"#)
        #expect(given == (sent + 5, sent + 5, sent + 9))
        let past = try event(#""push":{"send_at_ms":\#(sent)}"#)
        #expect(past == (nil, sent, sent + day))
    }

    @Test func aPayloadMayBeATextAndAnEmptyOneIsAbsent() throws {
        func payload(_ json: String) throws -> CustomPayload? {
            try message(#""push":{"payload":\#(json)}"#).push.payload
        }
        #expect(try payload(#""""#) == nil)
        #expect(try payload(#""x""#) == .text("x", members: nil))
        #expect(try payload(#""[1]""#) == .text("[1]", members: nil))
        #expect(try payload(#""{\"k\":1}""#) == .text(#"{"k":1}"#, members: [.init("k", .number("1"))]))
        #expect(try payload(#""{\"k\":1} x""#) == .text(#"{"k":1} x"#, members: nil))
        let long = String(repeating: "中", count: 2048)
        #expect(try payload("\"\(long)\"") == .text(long, members: nil))
    }

    @Test func ofARepeatedKeyTheLastCountsAndNullIsAsAbsent() throws {
        #expect(try message(#""custom":"no","custom":true,"push":{"sms":5,"sms":null}"#).isCustomType)
    }

    @Test func aGroupNeedsNoRecipients() throws {
        #expect(try message(#""conv":{"id":"g","type":"group"},"to":null"#).to.uids == nil)
        #expect(try message(#""conv":{"id":"g","type":"group"},"to":{"exclude":["x"]}"#).to.exclude == ["x"])
    }

    @Test(arguments: [
        (String(repeating: "a", count: 100), nil), (String(repeating: "a", count: 101), 99),
        (String(repeating: "中", count: 100), nil), (String(repeating: "中", count: 101), 99),
        // Of 464 bytes, which is what 100 characters may have, each takes 18 and the `…` three.
        (String(repeating: "👨‍👩‍👧", count: 101), 25), (String(repeating: "👨‍👩‍👧", count: 25), nil),
    ])
    func longTitlesAreCutOnAGraphemeBorder(title: String, kept: Int?) throws {
        let cut = try #require(try message(#""push":{"title":"\#(title)"}"#).push.title)
        #expect(cut == (kept.map { String(title.prefix($0)) + "…" } ?? title))
    }

    @Test func identifiersAreMeasuredInBytes() throws {
        let id = String(repeating: "中", count: 21) + "x"
        #expect(try message(#""msg_id":"\#(id)""#).msgID == id)
        #expect(throws: BadRecord.self) { try message(#""msg_id":"\#(id)x""#) }
    }

    @Test func aPayloadIsMeasuredWithoutItsSpaces() throws {
        let spaces = String(repeating: " ", count: 3000)
        #expect(
            try message(#""push":{"payload":{"k":\#(spaces)1}}"#).push.payload == .object([.init("k", .number("1"))]))
    }

    @Test func aRevokeNamesItsTarget() throws {
        let record =
            BadRecordTests.head
            + #""kind":"revoke","msg_id":"m","conv":{"id":"c","type":"group"},"from":{"uid":"a"},"revoke":{"target_msg_id":"t","badge":"count"}}"#
        guard case .message(let shared) = try read(record).body else { throw Mismatch() }
        let message = shared.value
        #expect(message.kind == .revoke)
        #expect(message.revoke == Message.Revoke(targetMsgID: "t", badge: .count))
    }

    @Test func aLiveActivityIsRead() throws {
        let record =
            BadRecordTests.head
            + #""kind":"live_activity","to":{"uids":["b"]},"la":{"activity_id":"x","event":"start","state":{"eta":5},"attributes_type":"T","attributes":{"o":1},"alert":{"title":"t"},"stale_ms":1700000000005,"dismissal_ms":0,"relevance":0.50,"priority":"normal"}}"#
        guard case .liveActivity(let activity) = try read(record).body else { throw Mismatch() }
        #expect(activity.msgID == nil)
        #expect(activity.uids == ["b"])
        #expect(activity.activityID == "x" && activity.action == .start && activity.priority == .normal)
        #expect(activity.state["eta"] == .number("5"))
        #expect(activity.attributesType == "T" && activity.attributes?["o"] == .number("1"))
        #expect(activity.alert?["title"]?.string == "t")
        #expect(activity.staleMs == 1_700_000_000_005 && activity.dismissalMs == 0 && activity.relevance == "0.50")
    }

    @Test(arguments: [
        ("", LiveActivity.Input.unsaid), (#","input_push_token":true"#, .token),
        (#","input_push_token":false,"input_push_channel":"dHN0+/8=""#, .channel("dHN0+/8=")),
    ])
    func theWayOfUpdatesIsRead(fields: String, input: LiveActivity.Input) throws {
        let record =
            BadRecordTests.head
            + #""kind":"live_activity","to":{"uids":["b"]},"la":{\#(BadRecordTests.start)"#
        guard case .liveActivity(let activity) = try read(record + fields + "}}").body else { throw Mismatch() }
        #expect(activity.input == input)
    }

    /// They are a start's: others ignore them, whatever they are.
    @Test(arguments: ["update", "end"])
    func theWayOfUpdatesIsNoMatterOfLaterEvents(event: String) throws {
        for fields in [
            #""input_push_token":true"#, #""input_push_channel":"a b""#,
            #""input_push_channel":7,"input_push_token":"x""#,
            #""input_push_token":true,"input_push_channel":"ab==""#,
        ] {
            let record =
                BadRecordTests.head
                + #""kind":"live_activity","la":{"activity_id":"x","event":"\#(event)","state":{},\#(fields)}}"#
            guard case .liveActivity(let activity) = try read(record).body else { throw Mismatch() }
            #expect(activity.input == .unsaid, "\(fields)")
        }
    }

    @Test func anEmptyOptionalIdentifierIsAbsent() throws {
        let record =
            BadRecordTests.head
            + #""kind":"live_activity","msg_id":"","to":{"uids":["b"]},"la":{\#(BadRecordTests.start),"input_push_channel":""}}"#
        guard case .liveActivity(let activity) = try read(record).body else { throw Mismatch() }
        #expect(activity.msgID == nil && activity.input == .unsaid)
        guard case .bind(let binding) = try state(BadRecordTests.bind(#""activity_id":"""#)) else { throw Mismatch() }
        #expect(binding.token.activityID == nil)
        let report = try state(
            BadRecordTests.state("open_report", #""device":"d","pid":"p","opened_ms":1700000000000,"msg_id":"""#))
        guard case .openReport(let opened) = report else { throw Mismatch() }
        #expect(opened.msgID == nil)
    }

    @Test func aBindLowersTheTokenAndTakesItsTime() throws {
        let record = BadRecordTests.bind(
            #""token":"ABcd09","cert":"voip","content_key":"k","lang":"ja","tz":"Asia/Tokyo","activity_id":"x","attributes_type":"Ride""#
        )
        guard case .bind(let binding) = try state(record) else { throw Mismatch() }
        let token = TokenRecord(
            hex: "abcd09", environment: .sandbox, topic: "t", type: .alert, credential: "voip", contentKey: "k",
            language: "ja", zone: "Asia/Tokyo", activityID: "x", attributesType: "Ride", boundMs: 1_700_000_000_000)
        #expect(binding == UserState.Binding(device: "d", token: token, version: 1))
    }

    @Test func theOtherUserStateKindsAreRead() throws {
        typealias Tests = BadRecordTests
        let unbind = try state(Tests.state("unbind", #""token":{"device":"d","token":"AB","bind_ver":2}"#))
        guard case .unbind(let unbinding) = unbind else { throw Mismatch() }
        #expect(unbinding == UserState.Unbinding(device: "d", token: "ab", version: 2))

        let mute = try state(Tests.state("mute", #""conv_id":"c","level":-1,"until_ms":1700000000009"#))
        guard case .mute("c", .all, 1_700_000_000_009) = mute else { throw Mismatch() }
        let read = try state(Tests.state("read", #""conv_id":"c","up_to_seq":3"#))
        guard case .read("c", UserState.ReadMark(seq: 3)) = read else { throw Mismatch() }
        let report = try state(Tests.state("badge_report", #""device":"d","value":-4,"client_ms":1600000000005"#))
        guard case .badgeReport("d", 0, 1_600_000_000_005) = report else { throw Mismatch() }
        let ack = try state(Tests.state("ack", #""device":"d","conn_epoch":8,"msg_ids":["m","n"]"#))
        guard case .ack("d", 8, ["m", "n"]) = ack else { throw Mismatch() }
        let open = try state(Tests.state("open_report", #""device":"d","pid":"p""#))
        guard case .openReport(UserState.PushReport(device: "d", pid: "p")) = open else { throw Mismatch() }
    }

    /// Fields that a client or a backend may leave out.
    @Test(arguments: [
        BadRecordTests.state("ack", #""device":"d","msg_ids":["m"]"#),
        BadRecordTests.state("arrived_report", #""device":"d","pid":"p","arrived_ms":1600000000005,"msg_id":"m""#),
        BadRecordTests.bind(#""cert":"","content_key":"","lang":"","tz":"""#),
        BadRecordTests.state("settings", #""phone":"""#),
    ])
    func userStateIsReadWithoutWhatMayBeAbsentOrEmpty(record: String) throws {
        _ = try state(record)
    }

    @Test func aReportNamesItsPush() throws {
        typealias Tests = BadRecordTests
        let arrived = try state(
            Tests.state(
                "arrived_report",
                #""device":"d","pid":"0A0B","msg_id":"m","arrived_ms":1600000000005,"opened_ms":1600000000006"#))
        guard case .arrivedReport(let report) = arrived else { throw Mismatch() }
        #expect(report == UserState.PushReport(device: "d", pid: "0a0b", msgID: "m", atMs: 1_600_000_000_005))
        let opened = try state(
            Tests.state(
                "open_report",
                #""device":"d","pid":"p","msg_id":"m","arrived_ms":1600000000005,"opened_ms":1600000000006"#))
        guard case .openReport(let report) = opened else { throw Mismatch() }
        #expect(report == UserState.PushReport(device: "d", pid: "p", msgID: "m", atMs: 1_600_000_000_006))
    }

    @Test func theWordsOfATokenAreAbsentOrEmptyOrSaid() throws {
        guard case .bind(let silent) = try state(BadRecordTests.bind(#""x":1"#)) else { throw Mismatch() }
        #expect(silent.token.credential == nil && silent.token.contentKey == nil)
        #expect(silent.token.language == nil && silent.token.zone == nil && silent.token.attributesType == nil)
        let record = BadRecordTests.bind(#""cert":"","content_key":"","lang":"","tz":"","attributes_type":"""#)
        guard case .bind(let cleared) = try state(record) else { throw Mismatch() }
        #expect(cleared.token.credential == "" && cleared.token.contentKey == "")
        #expect(cleared.token.language == "" && cleared.token.zone == "" && cleared.token.attributesType == nil)
    }

    @Test func aPhoneIsSetAndCleared() throws {
        for phone in ["+49 30 123456", ""] {
            guard case .settings(let change) = try state(BadRecordTests.state("settings", #""phone":"\#(phone)""#))
            else { throw Mismatch() }
            #expect(change.phone == phone)
        }
    }

    @Test func fieldsOfCommunicationNotificationsAreRead() throws {
        let name = String(repeating: "汉", count: 101)
        let message = try message(
            #""conv":{"id":"c","type":"group","name":"\#(name)"},"from":{"uid":"a","avatar":"https://a.example/1.png"}"#
        )
        #expect(message.conversation.name == String(repeating: "汉", count: 99) + "…")
        #expect(message.from.avatar == "https://a.example/1.png")
        let force = try self.message(#""push":{"force":{"mode":"all","lift_mute":false}}"#).push.force
        #expect(!force.liftsMute)
        #expect(try self.message(#""push":{"force":{"mode":"all"}}"#).push.force.liftsMute)
    }

    @Test(arguments: ["update", "end"], ["", #""to":{},"#, #""to":{"uids":null},"#])
    func anUpdateOrEndOfAnActivityNeedsNoRecipients(event: String, to: String) throws {
        let record =
            BadRecordTests.head
            + #""kind":"live_activity",\#(to)"la":{"activity_id":"x","event":"\#(event)","state":{}}}"#
        guard case .liveActivity(let activity) = try read(record).body else { throw Mismatch() }
        #expect(activity.isForAllBound && activity.uids.isEmpty)
        let named = record.replacing("\"la\":", with: "\"to\":{\"uids\":[\"b\"]},\"la\":")
        guard case .liveActivity(let one) = try read(named).body else { throw Mismatch() }
        #expect(!one.isForAllBound && one.uids == ["b"])
    }

    @Test func settingsChangeOnlyWhatIsGiven() throws {
        let record = BadRecordTests.state(
            "settings", #""dnd":{"on":true,"start":"22:05","tz":"UTC","level":1},"show_detail":false,"hold_s":600"#)
        guard case .settings(let change) = try state(record) else { throw Mismatch() }
        var expected = UserState.SettingsChange()
        expected.dndOn = true
        expected.dndStart = 22 * 60 + 5
        expected.dndZone = "UTC"
        expected.dndLevel = 1
        expected.showDetail = false
        expected.holdSeconds = 600
        #expect(change == expected)
    }

    @Test func `levels by type and a snooze are read, each as far as it is given`() throws {
        func change(_ fields: String) throws -> UserState.SettingsChange {
            guard case .settings(let change) = try state(BadRecordTests.state("settings", fields)) else {
                throw Mismatch()
            }
            return change
        }
        var expected = UserState.SettingsChange()
        expected.levels = [.p2p: .unset, .group: .mentions, .custom: .all]
        expected.snoozeUntilMs = 1_700_000_000_000
        #expect(
            try change(
                #""levels":{"p2p":0,"group":1,"ultra":null,"custom":-1},"snooze_until_ms":1700000000000"#) == expected)
        let all = try change(#""levels":{"p2p":-1,"group":5,"ultra":4,"system":2,"custom":1}"#).levels
        #expect(
            all == [.p2p: .all, .group: .blocked, .ultra: .mentionsOfAll, .system: .mentionsOfMe, .custom: .mentions])
        #expect(try change(#""snooze_until_ms":0"#).snoozeUntilMs == 0)
        #expect(try change(#""levels":{},"snooze_until_ms":null"#) == UserState.SettingsChange())
        #expect(try change(#""levels":null"#) == UserState.SettingsChange())
    }

    @Test(arguments: [
        (#""alerts":false"#, false), (#""alerts":true"#, true), (#""alerts":null"#, true), (#""x":1"#, true),
    ])
    func `a bind says whether its device shows alerts`(fields: String, shows: Bool) throws {
        guard case .bind(let binding) = try state(BadRecordTests.bind(fields)) else { throw Mismatch() }
        #expect(binding.token.showsAlerts == shows)
    }

    @Test func dndHasDaysAndWindows() throws {
        let days = #""dnd":{"start":"22:00","end":"08:00","days":[5,6,5]}"#
        guard case .settings(let single) = try state(BadRecordTests.state("settings", days)) else { throw Mismatch() }
        #expect(single.dndDays?.numbers == [5, 6] && single.touchesWindow)
        let list = #""dnd":{"windows":[{"start":"01:00","end":"02:00"},{"start":"23:00","end":"01:00","days":[7]}]}"#
        guard case .settings(let several) = try state(BadRecordTests.state("settings", list)) else { throw Mismatch() }
        #expect(
            several.dndWindows == [
                DNDWindow(start: 60, end: 120), DNDWindow(start: 1380, end: 60, days: .init(day: 7)),
            ])
    }

    @Test(arguments: ["US/Pacific", "Asia/Calcutta", "PRC", "Etc/GMT+8", "UTC", ""])
    func aTimeZoneMayHaveALegacyName(zone: String) throws {
        let record = BadRecordTests.state("settings", #""dnd":{"tz":"\#(zone)"}"#)
        guard case .settings(let change) = try state(record) else { throw Mismatch() }
        #expect(change.dndZone == zone)
    }

    // MARK: Times

    private static let sent: Int64 = 1_700_000_000_000

    /// - Parameter latest: Kafka's time.
    private func state(_ kind: String, _ fields: String, latest: Int64) throws -> UserState.Change {
        let reader = EventReader(apps: ["im"])
        let event = try reader.read(
            Array(BadRecordTests.state(kind, fields).utf8), of: .userState, latestMs: latest)
        guard case .userState(let state) = event.body else { throw Mismatch() }
        return state.change
    }

    @Test(
        arguments: [(Int64.max, 1_700_000_000_000), (1_700_000_000_000 - 5, 1_700_000_000_000 - 5)] as [(Int64, Int64)])
    func aClientsTimeIsNotLaterThanTheRecords(latest: Int64, wanted: Int64) throws {
        let far = Self.sent + 31_536_000_000
        let report = try state("badge_report", #""device":"d","value":1,"client_ms":\#(far)"#, latest: latest)
        guard case .badgeReport(_, _, wanted) = report else { throw Mismatch() }
        let read = try state("read", #""conv_id":"c","up_to_ms":\#(far)"#, latest: latest)
        guard case .read(_, UserState.ReadMark(seq: nil, ms: wanted)) = read else { throw Mismatch() }
        for (kind, field) in [("open_report", "opened_ms"), ("arrived_report", "arrived_ms")] {
            let change = try state(kind, #""device":"d","pid":"p","\#(field)":\#(far)"#, latest: latest)
            switch change {
            case .openReport(let report), .arrivedReport(let report): #expect(report.atMs == wanted)
            default: throw Mismatch()
            }
        }
        guard
            case .bind(let binding) = try state(
                "bind", #""token":{"device":"d","token":"ab","env":"sandbox","topic":"t","type":"alert","bind_ver":1}"#,
                latest: latest)
        else { throw Mismatch() }
        #expect(binding.token.boundMs == wanted)
    }

    @Test(
        arguments: [
            (nil, 50, 50), (0, 50, 50), (40, 50, 40), (60_051, 50, 50), (60_050, 50, 60_050), (.max, 50, 50),
            // Two workers, one of them nine seconds late.
            (105_000, 109_000, 105_000), (105_000, 100_000, 105_000),
        ] as [(Int64?, Int64, Int64)])
    func theLatestTimeIsKafkasUnlessItIsAbsentOrFarInTheFuture(kafka: Int64?, now: Int64, latest: Int64) {
        #expect(EventReader.latestMs(kafkaMs: kafka, nowMs: now) == latest)
    }

    @Test(arguments: [" ", "\u{200b}\u{200f}", "\u{200e} \u{feff}", "\u{0}\u{1f}", "\u{3164}"])
    func aTextThatShowsNothingIsAbsent(text: String) throws {
        let escaped = text.utf16.map { unit in "\\u" + String(UInt32(unit) + 0x10000, radix: 16).dropFirst() }.joined()
        let message = try message(
            #""from":{"uid":"a","nick":"\#(escaped)"},"push":{"title":"\#(escaped)","content":"\#(escaped)"}"#)
        #expect(message.from.nick == nil && message.push.title == nil && message.push.content == nil)
    }

    @Test(
        arguments: [
            ("c", false), ("a", false), ("b", false), ("x", true), ("", true), (nil, true),
        ] as [(String?, Bool)])
    func aKeyIsUsualIfItIsTheConversationsOrAUsers(key: String?, isUnusual: Bool) throws {
        let event = try read(BadRecordTests.message(""))
        guard let key else {
            #expect(event.hasUnusualKey(nil) == isUnusual)
            return
        }
        #expect(Array(key.utf8).withUnsafeBytes { event.hasUnusualKey($0) } == isUnusual, "\(key)")
    }
}
