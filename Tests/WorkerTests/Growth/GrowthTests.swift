// SPDX-License-Identifier: Apache-2.0
import Console
import JSON
import Payload
import PushCore
import Support
import Testing
import YAML

@testable import Redis
@testable import Worker

/// No record, reply or file costs more than its size: each row is hostile input that grows.
@Suite(.serialized) struct GrowthTests {
    private static let marks = "\u{301}"

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var topic = RecordClass.events
        var record: @Sendable (Int) -> String
    }

    private static func text(_ unit: String, _ count: Int) -> String { String(repeating: unit, count: count) }

    private static func list(_ count: Int, _ item: (Int) -> String) -> String {
        (0..<count).map(item).joined(separator: ",")
    }

    private static func message(_ name: String, _ fields: @escaping @Sendable (Int) -> String) -> Row {
        Row(testDescription: name) { BadRecordTests.message(fields($0)) }
    }

    private static func state(_ name: String, _ record: @escaping @Sendable (Int) -> String) -> Row {
        Row(testDescription: name, topic: .userState, record: record)
    }

    static let rows: [Row] = [
        message("a uid of marks") { #""to":{"uids":["a\#(text(marks, $0))"]}"# },
        message("uids of marks") { n in #""to":{"uids":[\#(list(n / 50) { "\"\($0)\(text(marks, 60))\"" })]}"# },
        message("mentions of marks") { n in #""mention":{"uids":[\#(list(n / 50) { "\"\($0)\(text(marks, 60))\"" })]}"#
        },
        message("a kind of marks") { #""kind":"a\#(text(marks, $0))""# },
        message("a content of marks") { #""push":{"content":"a\#(text(marks, $0))"}"# },
        message("a content of flags") { #""push":{"content":"\#(text("🇩🇪", $0 / 8))"}"# },
        message("a title of joined families") { #""push":{"title":"\#(text("👩‍", $0 / 7))"}"# },
        message("keys of marks in aps") { n in
            #""push":{"aps":{\#(list(n / 100) { "\"\($0)\(text(marks, 100))\":1" })}}"#
        },
        message("many keys in aps") { n in #""push":{"aps":{\#(list(n / 10) { "\"k\($0)\":1" })}}"# },
        message("one key many times") { n in #""push":{"aps":{\#(list(n / 10) { "\"k\":\($0)" })}}"# },
        message("an alert of marks") { #""push":{"aps":{"alert":"a\#(text(marks, $0))"}}"# },
        message("unknown fields") { n in list(n / 10) { "\"k\($0)\":1" } },
        message("a long number") { #""push":{"aps":{"n":\#(text("9", $0))}}"# },
        message("many long numbers") { n in #""push":{"aps":{"n":[\#(list(n / 30) { _ in text("9", 25) })]}}"# },
        message("many escapes") { #""push":{"content":"\#(text("\\u0301", $0 / 6))"}"# },
        state("a language of many subtags") { BadRecordTests.bind(#""lang":"de\#(text("-a", $0 / 2))""#) },
        state("a language of marks") { BadRecordTests.bind(#""lang":"d\#(text(marks, $0))""#) },
        state("many acknowledged") { n in
            BadRecordTests.state("ack", #""device":"d","msg_ids":[\#(list(n / 8) { "\"m\($0)\"" })]"#)
        },
    ]

    @Test(arguments: rows) func aRecordCostsNoMoreThanItsSize(row: Row) {
        let reader = EventReader(apps: ["im"])
        expectNoMoreThanItsSize(row.testDescription, at: 4_000, { Array(row.record($0).utf8) }) { bytes in
            guard let event = try? reader.read(bytes, of: row.topic), case .message(let shared) = event.body else {
                return
            }
            Self.play(shared.value)
        }
    }

    /// What follows of a message: the decision, and the payload in each profile.
    private static func play(_ message: Message, language: String = "de", contentKey: String? = nil) {
        var recipient = Recipient(uid: "me")
        let token = TokenRecord(
            hex: "ab", environment: .production, topic: "t", type: .alert, contentKey: contentKey, language: language,
            boundMs: 0)
        recipient.tokens = [BoundToken(device: "d", record: token, version: 1)]
        _ = message.isMeant(for: "me")
        _ = decide(
            message, sentMs: 0, for: recipient, policy: AppPolicy(id: "im", topic: "t"), zones: SystemZones(), now: 0)
        let templates = Templates(languages: ["de": .init(generic: "Nachricht"), "zh": .init(generic: "消息")])
        for profile in [PayloadProfile.nim, .rc, .wps, .raw] {
            for isHidden in [false, true] {
                let variant = PayloadVariant(language: language, isHidden: isHidden, contentKey: contentKey)
                _ = PayloadTemplate(
                    message, variant: variant, rules: PayloadRules(profile: profile), templates: templates)
                _ = ShownText(
                    message, variant: variant, rules: PayloadRules(profile: profile), templates: templates)
            }
        }
        _ = CollapseID.choose(message, profile: .nim)
    }

    @Test(arguments: ["a\(marks)", "-", "a-", "_"]) func aLanguageOrAKeyCostsNoMoreThanItsSize(unit: String) {
        let message = Message(
            msgID: "m", expireAtMs: .max, conversation: .init(id: "c", type: .p2p), from: .init(uid: "a"), to: .init())
        expectNoMoreThanItsSize(unit, at: 2_000, { Self.text(unit, $0) }) { text in
            Self.play(message, language: text, contentKey: text)
        }
    }

    private static func reply(_ texts: [String]) throws -> ReplyReader {
        var reader = try ReplyReader(replyBytesMax: 64 << 20)
        var rest = Array(("*\(texts.count)\r\n" + texts.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()).utf8)[...]
        while !rest.isEmpty {
            let part = rest.prefix(4096)
            rest = rest.dropFirst(part.count)
            part.withUnsafeBytes { reader.feed($0) }
        }
        return reader
    }

    private final class Held {
        var reader: ReplyReader
        init(_ texts: [String]) throws {
            reader = try GrowthTests.reply(texts)
            #expect(reader.next() == .reply)
        }
    }

    static let replies: [(String, @Sendable (Int) -> [String])] = [
        (
            "many tokens",
            { n in (0..<n / 8).flatMap { ["ta5:\(10_000 + $0)", "1 09223372036854775815 5 ab p 1:t----"] } }
        ),
        ("many devices", { n in (0..<n / 8).flatMap { ["d\($0)", "fg,ios,g\($0),7,9,0,-,-,l"] } }),
        (
            "devices of marks",
            { n in
                (0..<n / 64).flatMap { ["\($0)" + text(marks, 60), "fg,ios,\($0)\(text(marks, 100)),7,9,0,-,-,l"] }
            }
        ),
        ("one of commas", { n in ["d", "fg,ios,g,7,9,0,-," + text(",", n)] }),
        (
            "one of marks",
            { n in
                [
                    "la", "1 a" + text(marks, n), "ta1:d",
                    "1 09223372036854775815 5 ab p 1:t--\(2 * n + 1):a\(text(marks, n))-",
                ]
            }
        ),
        ("many accepted", { n in ["p" + text("a1:d", n / 4)] }),
        ("a long trace", { n in ["f\u{1}" + text("\u{1}", n)] }),
    ]

    @Test(arguments: replies) func aReplyCostsNoMoreThanItsSize(name: String, texts: @Sendable (Int) -> [String]) throws
    {
        try expectNoMoreThanItsSize(name, at: 8_000, { try Held(texts($0)) }) { held in
            let reply = RedisReply(held.reader.arena, 0)
            var recipient = Recipient(uid: "me")
            RecipientReplies.user(reply, into: &recipient)
            RecipientReplies.presence(reply, into: &recipient)
            _ = MemberPage(reply)
            _ = PairMark(reply[0]).map { mark in mark.trace.withUnsafeBytes { TraceRecord($0, kind: .message, id: "m") }
            }
            var leases = LeaseCache()
            leases.apply(to: &recipient, nowNanos: 0)
            for entry in recipient.presence { leases.store(entry.gateway, epoch: 1, nowNanos: 0) }
            let message = Message(
                msgID: "m", expireAtMs: .max, conversation: .init(id: "c", type: .p2p), from: .init(uid: "a"),
                to: .init())
            _ = decide(
                message, sentMs: 0, for: recipient, policy: AppPolicy(id: "im", topic: "t"), zones: SystemZones(),
                now: 0)
        }
    }

    static let files: [(String, @Sendable (Int) -> String)] = [
        ("a key of marks", { "a\(text(marks, $0)): 1" }),
        ("many keys", { n in (0..<n / 8).map { "k\($0): 1\n" }.joined() }),
        ("one key many times", { text("k: 1\n", $0 / 5) }), ("many items", { "a: [\(text("1,", $0 / 2))1]" }),
        ("a deep one", { "a: " + text("[", $0) }), ("a word of marks", { "results: a\(text(marks, $0))" }),
        ("a flag of marks", { "state_results: a\(text(marks, $0))" }),
        ("many apps", { "apps:\n" + text("  - {id: a}\n", $0 / 12) }),
        ("quotes", { "a: \"\(text("\\n", $0 / 2))\"" }), ("an anchor", { "a: &\(text("x", $0)) 1" }),
    ]

    @Test(arguments: files) func aFileCostsNoMoreThanItsSize(name: String, yaml: @Sendable (Int) -> String) {
        expectNoMoreThanItsSize(name, at: 4_000, { Array(yaml($0).utf8) }) { bytes in
            _ = try? YAMLDocument(parsing: bytes, source: "f")
            _ = Configuration.read(bytes, source: "f")
        }
    }

    @Test(arguments: ["\u{1b}", "\u{202e}", "a\u{301}", "汉"]) func theCostOfAPageIsBoundedByItsSize(unit: String) {
        expectNoMoreThanItsSize(unit, at: 4_000, { Self.text(unit, $0) }) { text in
            let shown: TerminalText = "\(text)"
            #expect(!shown.isEmpty && Style.padded(shown, to: 8) == shown)
        }
    }

    /// The counters see what they are to see: a sum of prefixes grows as the square.
    @Test func theSquareOfASizeIsSeen() {
        let work: (Int) -> Void = { size in
            var texts: [String] = []
            for count in 0..<size { texts.append(String(repeating: "x", count: count)) }
            #expect(texts.count == size)
        }
        let one = CountedWork.of { work(500) }
        let four = CountedWork.of { work(2_000) }
        #expect(Sanitizer.isOn || four.bytes > 10 * one.bytes)
    }
}
