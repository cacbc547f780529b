// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis
import Support
import Testing

@testable import Worker

@Suite(.timeLimit(.minutes(10)))
struct RecipientReadTests {
    private let base = StateWorld.base

    /// The value of a presence field → state and conversation, or nil: suspended.
    @Test(
        arguments: [
            ("fg,ios,g1,7,9,1700000000000,-,c1,l", "fg", "c1"),
            ("bg,ipad,g1,7,9,1700000000000,1699999999000,-,-", "bg", nil),
            ("off,mac,g1,7,9,0,-,-,", "off", nil),
            ("fg,ios,g1,7,9,0,-,a,b,c,l", "fg", "a,b,c"),
            ("", nil, nil), ("fg", nil, nil), ("fg,ios", nil, nil), ("fg,nokia,g1,7,9,0,-,-,-", nil, nil),
            ("sleeping,ios,g1,7,9,0,-,-,-", nil, nil), ("fg,ios,-,7,9,0,-,-,-", nil, nil),
            ("fg,ios,g1,x,9,0,-,-,-", nil, nil), ("fg,ios,g1,7,9,0,soon,-,-", nil, nil),
            ("fg,ios,g1,7,99999999999999999999,0,-,-,-", nil, nil), ("fg,ios,g1,7,9,0,-,c1", nil, nil),
        ] as [(String, String?, String?)])
    func presenceIsReadOrVoid(value: String, state: String?, conversation: String?) {
        var entry: DevicePresence?
        Array("d".utf8).withUnsafeBytes { device in
            Array(value.utf8).withUnsafeBytes { entry = PresenceText.entry(device: device, value: $0) }
        }
        #expect(entry?.state.rawValue == state && entry?.activeConversation == conversation)
        if value.hasPrefix("bg,ipad") {
            #expect(entry?.backgroundSinceMs == base - 1000 && entry?.raisesLocalAlert == false)
            #expect(entry?.gatewayEpoch == 7 && entry?.connectionEpoch == 9 && entry?.gateway == "g1")
        }
        if value.hasSuffix(",l") { #expect(entry?.raisesLocalAlert == true) }
    }

    /// Each push to its user would keep Redis and the link busy for seconds otherwise. A hash that was huge has a sparse table.
    @Test(arguments: [(1, 1), (255, 255), (256, 256), (257, 256), (900, 256), (20_000, 256)])
    func `one command reads presence whole up to 256 fields, and 256 fields of a huge hash`(
        fields: Int, read: Int
    ) async throws {
        let world = try StateWorld()
        try await world.connect()
        let value = "fg,ios,g1,7,9,1700000000000,-,\(String(repeating: "c", count: 64)),l"
        /// A command on each field, in steps that a busy machine answers within the time of a command.
        func change(_ fields: ClosedRange<Int>, _ command: String) async throws {
            for first in stride(from: fields.lowerBound, through: fields.upperBound, by: 1000) {
                _ = try await world.text(
                    "EVAL", "for i = ARGV[1], ARGV[2] do redis.call(\(command)) end return 'OK'", "1", "p:{im:u}",
                    "\(first)", "\(min(first + 999, fields.upperBound))", value)
            }
        }
        try await change(1...fields, "'HSET', KEYS[1], 'd' .. i, ARGV[3]")
        func presence() async throws -> Set<String> {
            try await world.ask(
                { try $0.readPresence(app: StateWorld.app, uid: "u", tag: $1) },
                { reply in
                    var recipient = Recipient(uid: "u")
                    RecipientReplies.presence(reply, into: &recipient)
                    return Set(recipient.presence.map(\.device))
                })
        }
        func sent() async throws -> Int {
            let line = try await world.text("INFO", "stats").split(whereSeparator: \.isNewline)
                .first { $0.hasPrefix("total_net_output_bytes:") }
            return try #require(line?.split(separator: ":").last.flatMap { Int($0) })
        }
        try await world.raw("CONFIG", "RESETSTAT")
        #expect(try await presence().count == read)
        // The answers to RESETSTAT and INFO are in it.
        #expect(try await sent() < 256 * 160 + 10_000)
        let calls = try await world.text("INFO", "commandstats")
        #expect(calls.contains("cmdstat_hrandfield:calls=1,"))
        #expect(!calls.contains("cmdstat_hgetall") && !calls.contains("cmdstat_hscan"))
        if fields > 3 { try await change(4...fields, "'HDEL', KEYS[1], 'd' .. i") }
        #expect(try await presence() == Set((1...min(3, fields)).map { "d\($0)" }), "what is left is read whole")
        await world.end()
    }

    @Test func allPartsOfARecipientAreRead() async throws {
        let world = try StateWorld()
        try await world.connect()
        let empty = try await world.recipient("u", conversation: "c", group: "g")
        #expect(empty.recipient.settings == UserSettings() && empty.recipient.presence.isEmpty)
        #expect(empty.recipient.mute == nil && empty.recipient.read == nil && empty.recipient.groupLevel == nil)
        try await world.raw("HSET", "p:{im:u}", "phone", "fg,ios,g1,7,9,1700000000000,-,c1,l", "broken", "fg")
        try await world.raw("HSET", "g:{im:g}", "u", "4", "v", "77")
        var settings = UserState.SettingsChange()
        settings.dndOn = true
        settings.dndStart = 1320
        settings.dndEnd = 480
        settings.dndZone = "Asia/Tokyo"
        try await world.change("u", .settings(settings))
        settings = UserState.SettingsChange()
        settings.dndLevel = 1
        settings.showDetail = false
        settings.pushWhenDesktopOnline = false
        settings.holdSeconds = 30
        settings.language = "en"
        try await world.change("u", .settings(settings))
        try await world.change("u", .mute(conversation: "c", level: .mentions, untilMs: base))
        try await world.change("u", .read(conversation: "c", upTo: .init(seq: 5)))
        try await world.change("u", .read(conversation: "c", upTo: .init(ms: base + 7)), at: 1)
        try await world.change("u", .read(conversation: "c", upTo: .init(seq: 4)), at: 2)
        let read = try await world.recipient("u", conversation: "c", group: "g").recipient
        let dnd = UserSettings.DoNotDisturb(on: true, start: 1320, end: 480, zone: "Asia/Tokyo", level: 1)
        #expect(read.settings.dnd == dnd && !read.settings.showDetail && !read.settings.pushWhenDesktopOnline)
        #expect(read.settings.holdSeconds == 30 && read.settings.language == "en")
        #expect(read.mute == Recipient.Mute(level: .mentions, untilMs: base))
        #expect(read.read == UserState.ReadMark(seq: 5, ms: base + 7))
        #expect(read.groupLevel == .mentionsOfAll)
        #expect(read.presence.map(\.device) == ["phone"])
        #expect(try await world.recipient("v", group: "g").recipient.groupLevel == nil)
        try await world.change("u", .mute(conversation: "c", level: .unset, untilMs: nil), at: 1)
        #expect(try await world.recipient("u", conversation: "c").recipient.mute == .init(level: .unset))
        await world.end()
    }

    @Test func settingsThatSayNothingAskNothing() async throws {
        let world = try StateWorld()
        try await world.connect()
        #expect(try await world.change("u", .settings(.init())) == .ignored(.unusable))
        #expect(try await world.change("u", .ack(device: "d", connectionEpoch: 1, msgIDs: [])) == .ignored(.unusable))
        #expect(try await world.change("u", .read(conversation: "c", upTo: .init())) == .ignored(.unusable))
        #expect(try await world.raw("DBSIZE") == 0)
        await world.end()
    }

    @Test func acknowledgementsWaitForTheirDelivery() async throws {
        let world = try StateWorld()
        try await world.connect()
        let ack = UserState.Change.ack(device: "d1", connectionEpoch: 3, msgIDs: ["m1", "m2"])
        #expect(try await world.change("u", ack) == .applied(.none))
        #expect(try await world.change("u", .ack(device: "d2", connectionEpoch: 3, msgIDs: ["m2"])) == .applied(.none))
        func devices(_ id: String) async throws -> [String] {
            try await world.ask(
                { try $0.acks(app: StateWorld.app, uid: "u", msgID: id, tag: $1) }, { StateStore.devices($0) })
        }
        #expect(try await devices("m1") == ["d1"])
        #expect(try await devices("m2").sorted() == ["d1", "d2"])
        #expect(try await devices("m3") == [])
        let life = try await world.raw("TTL", "c:k:{im:u}") ?? 0
        #expect(life > 0 && life <= 600)
        await world.end()
    }

    @Test func theFirstOpenReportOfADeviceCounts() async throws {
        let world = try StateWorld()
        try await world.connect()
        let report = UserState.Change.openReport(.init(device: "d", pid: "p"))
        #expect(try await world.change("u", report) == .applied(.none))
        #expect(try await world.change("u", report) == .repeated)
        #expect(
            try await world.change("u", .openReport(.init(device: "e", pid: "p"))) == .applied(.none))
        await world.end()
    }

    @Test func membersComePageByPage() async throws {
        let world = try StateWorld()
        try await world.connect()
        for index in 0..<700 {
            try await world.raw("HSET", "g:{im:g}", "u\(index)", index == 3 ? "5" : index == 4 ? "x" : "0")
        }
        var levels: [String: MuteLevel] = [:]
        var cursor: UInt64 = 0
        var pages = 0
        repeat {
            let from = cursor
            let page = try await world.ask(
                { try $0.members(app: StateWorld.app, group: "g", cursor: from, count: 100, tag: $1) },
                { MemberPage($0) })
            for member in page?.members ?? [] { levels[member.uid] = member.level }
            cursor = page?.cursor ?? 0
            pages += 1
        } while cursor != 0
        #expect(levels.count == 700 && pages > 3 && levels["u3"] == .blocked && levels["u4"] == .unset)
        await world.end()
    }

    /// The last of them may have a short life, and an earlier one still waits.
    @Test func aNoteOfParkedWorkLivesAsLongAsTheLongestOfIt() async throws {
        let world = try StateWorld()
        try await world.connect()
        let base = StateWorld.base
        for (id, untilMs) in [("m1", base + 99), ("m2", base + 5), ("m3", base + 9)] as [(String, Int64)] {
            let note = ParkedNote(dueMs: base + 2, writtenMs: base + 1, untilMs: untilMs)
            _ = try await world.ask(
                { store, tag in
                    try store.noteParked(
                        app: StateWorld.app, uid: "u", device: "d", note, id: id, isAgain: false, tag: tag)
                }, { $0.int64 })
            _ = try await world.ask(
                { store, tag in
                    try store.noteParked(app: StateWorld.app, conversation: "c", note, id: id, tag: tag)
                }, { $0.int64 })
        }
        let longest = ParkedNote(dueMs: base + 2, writtenMs: base + 1, untilMs: base + 99)
        let parked = try await world.recipient("u").recipient.parked
        #expect(parked.map(\.note) == [longest])
        let ofConversation = try await world.ask(
            { store, tag in try store.readParked(app: StateWorld.app, conversation: "c", tag: tag) },
            { StateStore.parkedNote($0) })
        #expect(ofConversation == longest)
        await world.end()
    }

    /// Work of one device waits in the shards of its conversations, which end it in any order.
    @Test(arguments: [["m1", "m2", "m3"], ["m3", "m1", "m2"], ["m2", "m3", "m1"]])
    func `the note of a device stays until the last of its parked work has ended`(order: [String]) async throws {
        let world = try StateWorld()
        try await world.connect()
        let note = ParkedNote(dueMs: 2, writtenMs: 1, untilMs: StateWorld.base)
        for id in ["m1", "m2", "m3", "m1"] {
            _ = try await world.ask(
                { store, tag in
                    try store.noteParked(
                        app: StateWorld.app, uid: "u", device: "d", note, id: id, isAgain: false, tag: tag)
                }, { $0.int64 })
        }
        var left: [Int] = []
        for id in order {
            for _ in 0..<2 {
                _ = try await world.ask(
                    { try $0.forgetParked(app: StateWorld.app, uid: "u", device: "d", id: id, tag: $1) }, { $0.int64 })
            }
            left.append(try await world.recipient("u").recipient.parked.count)
        }
        #expect(left == [1, 1, 0])
        await world.end()
    }

    @Test func aPresenceWithoutALeaseOfItsEpochIsVoid() {
        var leases = LeaseCache(lifetimeNanos: 1000, capacity: 2)
        func recipient() -> Recipient {
            var recipient = Recipient(uid: "u")
            for (gateway, epoch) in [("g1", 7), ("g2", 7), ("g3", 7)] as [(String, Int64)] {
                recipient.presence.append(
                    DevicePresence(
                        device: gateway, state: .foreground, platform: .ios, gateway: gateway, gatewayEpoch: epoch,
                        connectionEpoch: 1, lastMs: 0))
            }
            return recipient
        }
        #expect(leases.unknownGateway(of: recipient(), nowNanos: 0) == "g1")
        leases.store("g1", epoch: 7, nowNanos: 0)
        leases.store("g2", epoch: 8, nowNanos: 0)
        #expect(leases.unknownGateway(of: recipient(), nowNanos: 999) == "g3")
        var read = recipient()
        leases.apply(to: &read, nowNanos: 999)
        #expect(read.presence.map(\.state) == [.foreground, .off, .off])
        #expect(leases.answer(for: "g1", nowNanos: 1000) == .unknown)
        // Asked for at 999; the other answer took until 1000.
        leases.store("g2", epoch: 7, nowNanos: 1000)
        read = recipient()
        leases.apply(to: &read, nowNanos: 999)
        #expect(read.presence.map(\.state) == [.foreground, .foreground, .off])
        // Full: it begins anew.
        leases.store("g3", epoch: nil, nowNanos: 1)
        #expect(leases.answer(for: "g1", nowNanos: 1) == .unknown && leases.answer(for: "g3", nowNanos: 1) == .notHeld)
    }
}
