// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@testable import Redis
@testable import Worker

/// What stands in Redis is as foreign as a record: over its bound it is not there, and no number in it traps.
struct HostileStateTests {
    /// What `body` makes of a reply of these texts: one alone, several as an array.
    private static func read<Value>(_ texts: [String], _ body: (borrowing RedisReply) -> Value) throws -> Value {
        var reader = try ReplyReader(replyBytesMax: 64 << 20)
        var wire = texts.count == 1 ? "" : "*\(texts.count)\r\n"
        for text in texts { wire += "$\(text.utf8.count)\r\n\(text)\r\n" }
        let bytes = Array(wire.utf8)
        var at = 0
        while at < bytes.count {
            let part = bytes[at..<min(at + 4096, bytes.count)]
            part.withUnsafeBytes { reader.feed($0) }
            at += part.count
        }
        #expect(reader.next() == .reply)
        return body(RedisReply(reader.arena, 0))
    }

    private static func user(_ fields: [(String, String)]) throws -> Recipient {
        try read(fields.flatMap { [$0.0, $0.1] }) { reply in
            var recipient = Recipient(uid: "u")
            RecipientReplies.user(reply, into: &recipient)
            return recipient
        }
    }

    private static func presence(_ fields: [(String, String)]) throws -> [DevicePresence] {
        try read(fields.flatMap { [$0.0, $0.1] }) { reply in
            var recipient = Recipient(uid: "u")
            RecipientReplies.presence(reply, into: &recipient)
            return recipient.presence
        }
    }

    private static func token(
        device: String = "d", hex: String = "abcd", topic: String = "t", _ words: [String] = ["-", "-", "-", "-"]
    ) -> (String, String) {
        func text(_ text: String) -> String { "\(text.utf8.count):\(text)" }
        return (
            "ta" + text(device),
            "1 \(StateKeys.version(7)) 5 \(hex) p " + text(topic) + words.map { $0 == "-" ? $0 : text($0) }.joined()
        )
    }

    @Test func aTokenWithinItsBoundsIsRead() throws {
        let recipient = try Self.user([Self.token(["c", "k", "de", "Asia/Tokyo"])])
        let record = try #require(recipient.tokens.first?.record)
        #expect(record.credential == "c" && record.contentKey == "k" && record.language == "de")
        #expect(record.zone == "Asia/Tokyo" && record.hex == "abcd")
    }

    @Test(arguments: [
        token(device: ByteBoundTests.marked(129)), token(hex: String(repeating: "ab", count: 257)), token(hex: "xy"),
        token(hex: "abc"), token(topic: String(repeating: "t", count: 257)), token(topic: "a b"),
    ])
    func aTokenThatNobodyCouldBindIsNone(field: String, record: String) throws {
        #expect(try Self.user([(field, record)]).tokens.isEmpty)
    }

    /// The token was bound by a worker that knew no bounds: it is pushed to, without the word.
    @Test(arguments: 0..<4) func aWordOverItsBoundIsNotThere(place: Int) throws {
        var words = ["c", "k", "de", "UTC"]
        words[place] = ByteBoundTests.marked(240_001)
        let record = try #require(try Self.user([Self.token(words)]).tokens.first?.record)
        let read = [record.credential, record.contentKey, record.language, record.zone]
        #expect(read[place] == nil)
        #expect(read.compactMap { $0 }.count == 3)
    }

    @Test func settingsOverTheirBoundsAreNotThere() throws {
        let long = ByteBoundTests.marked(200_001)
        let settings = try Self.user([
            ("ds", "1 60"), ("de", "1 120"), ("dz", "1 \(long)"), ("la", "1 \(long)"), ("ph", "1 \(long)"),
        ]).settings
        #expect(settings.dnd?.zone == nil && settings.language == nil && settings.phone == nil)
        #expect(settings.dnd?.windows == [DNDWindow(start: 60, end: 120)])
    }

    /// A minute that is none of a day is no setting, and a level is 1 or 5.
    @Test(arguments: ["9223372036854775807", "-9223372036854775808", "1440", "-1"])
    func aMinuteThatIsNoneMakesNoDND(minute: String) throws {
        #expect(try Self.user([("dn", "1 1"), ("ds", "1 0"), ("de", "1 \(minute)")]).settings.dnd == nil)
        #expect(try Self.user([("dn", "1 1"), ("ds", "1 \(minute)"), ("de", "1 9")]).settings.dnd == nil)
        #expect(try Self.user([("ds", "1 0"), ("de", "1 9"), ("dl", "1 \(minute)")]).settings.dnd?.level == 5)
    }

    @Test(arguments: ["fg,ios,%,7,9,0,-,-,-", "fg,ios,g1,7,9,0,-,%,-", "fg,ios,g1,7,9,0,-,-,%"])
    func presenceOverItsBoundsIsNone(value: String) throws {
        let long = ByteBoundTests.marked(300_001)
        #expect(try Self.presence([("d", value.replacing("%", with: long))]).isEmpty)
        #expect(try Self.presence([(long, value.replacing("%", with: "g"))]).isEmpty)
        #expect(try Self.presence([("d", value.replacing("%", with: "g"))]).count == 1)
    }

    /// Each device is looked for among the others: their number has a bound, so that the search has one.
    @Test func moreDevicesThanAUserHasAreNotRead() throws {
        let many = (0..<5_000).map { ("d\($0)", "fg,ios,g1,7,9,0,-,-,-") }
        #expect(try Self.presence(many).count == RecipientReplies.devicesMax)
        #expect(
            try Self.user((0..<5_000).map { Self.token(device: "d\($0)") }).tokens.count == RecipientReplies.devicesMax)
    }

    @Test func aMemberOrDeviceOverItsBoundIsNone() throws {
        let long = ByteBoundTests.marked(129)
        #expect(try Self.read([long, "d"]) { StateStore.devices($0) } == ["d"])
        #expect(try Self.read([long, "d"]) { StateStore.activityUsers($0) } == ["d"])
    }

    @Test(arguments: [Int64.min, -1, 0, 1, .max]) func noNumberOfABadgeTraps(one: Int64) throws {
        for other in [Int64.min, -1, 0, 1, .max] {
            for size in [Int64.min, -1, 0, 3, .max] {
                let badge = try Self.read(["0 \(one) \(other) \(one)"]) { BadgeReading(base: $0).badge(size: size) }
                #expect(badge >= 0)
            }
        }
    }

    @Test(arguments: [
        "", "1", "1 ", "1 00000000000000000005 b ", "1 00000000000000000005 b -1 u",
        "1 00000000000000000005 b 9223372036854775807 u",
        "1 00000000000000000005 u 99999999999999999999 u", "1 99999999999999999999 b 1 u",
    ])
    func aBrokenOwnerIsNone(text: String) throws {
        #expect(try Self.read([text]) { OwnerReply($0) } == nil)
        let token = BoundToken(
            device: "d", record: TokenRecord(hex: "ab", environment: .production, topic: "t", type: .alert, boundMs: 0),
            version: 5)
        #expect(try Self.read([text]) { OwnerReply.standing($0, uid: "u", token: token) } == .moved)
    }
}
