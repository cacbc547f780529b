// SPDX-License-Identifier: Apache-2.0
import JSON
import Payload
import PushCore
import Support
import Testing

@Suite struct SizeTests {
    /// One character each, of many bytes.
    static let family = "👩‍👩‍👧‍👦"

    @Test(arguments: ["a", "é", "e\u{301}", "汉", "🇩🇪", family, "\"", "\\", "\u{1F3F4}\u{E0067}\u{E0062}\u{E007F}"])
    func aLongBodyIsCutBetweenCharacters(character: String) throws {
        let content = String(repeating: character, count: 5000)
        for voip in [false, true] {
            let message = PayloadWorld.message {
                $0.push.prefix = false
                $0.push.voip = voip
                $0.push.content = content
            }
            let bytes = try PayloadWorld.bytes(message, badge: .max)
            let body = try #require(try JSONTree(parsing: bytes)["aps"]?["alert"]?["body"]?.string)
            #expect(body.hasSuffix("…"))
            #expect(!body.dropLast().isEmpty)
            #expect(body.dropLast().allSatisfy { String($0) == character })
            // As much as fits, no less: another character would not.
            let escaped = character == "\"" || character == "\\" ? 2 : character.utf8.count
            #expect(bytes.count + escaped > PayloadTemplate.limit(voip: voip))
        }
    }

    struct Border: CustomTestStringConvertible, Sendable {
        var profile: PayloadProfile
        var isVoIP: Bool
        var badge: Int64?
        var receiver: String

        var testDescription: String {
            "\(profile.rawValue), \(isVoIP ? "voip, " : "")badge \(badge.map { "\($0)" } ?? "-"), uid of \(receiver.utf8.count)"
        }

        static let all = [PayloadProfile.nim, .rc, .wps, .raw].flatMap { profile in
            [false, true].flatMap { isVoIP in
                [
                    (nil, "ben"), (7, String(repeating: "u", count: 128)), (.max, #"q"\"#),
                    (1, String(repeating: "\u{1}", count: 128)),
                ].map {
                    Border(profile: profile, isVoIP: isVoIP, badge: $0.0, receiver: $0.1)
                }
            }
        }
    }

    /// The size with this device's badge, pid and receiver id decides, to the byte.
    @Test(arguments: Border.all)
    func fittingTextsAreUnchangedAndOthersAreCutToTheLimit(_ border: Border) throws {
        let limit = PayloadTemplate.limit(voip: border.isVoIP)
        func render(_ count: Int) throws -> [UInt8] {
            let message = PayloadWorld.message {
                $0.push.voip = border.isVoIP
                $0.push.content = String(repeating: "x", count: count)
            }
            let template = try #require(PayloadWorld.template(message, profile: border.profile))
            return try #require(
                template.render(badge: border.badge, pid: PayloadWorld.pid, receiver: border.receiver), "\(count)")
        }
        let frame = try render(10).count - 10
        for size in limit - 60...limit + 40 {
            let bytes = try render(size - frame)
            let body = try #require(try JSONTree(parsing: bytes)["aps"]?["alert"]?["body"]?.string)
            if size <= limit {
                #expect(bytes.count == size && body == "Anna: " + String(repeating: "x", count: size - frame))
            } else {
                // `…` has three bytes.
                #expect(bytes.count == limit && body.hasSuffix("x…"), "\(size)")
            }
        }
    }

    /// Against the longest beginning that was found by trying each: as much of the body as fits, and no less.
    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func asMuchOfTheBodyStaysAsFits(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let profile = [PayloadProfile.nim, .rc, .wps, .raw].randomElement(using: &random) ?? .raw
        let badge = [nil, 1, 12_345, Int64.max].randomElement(using: &random) ?? nil
        let receiver = String(repeating: "u", count: .random(in: 1...128, using: &random))
        let alphabet = ["a", "\"", "\n", "é", "汉", "e\u{301}", "🇩🇪", Self.family]
        let content = (0..<30).map { _ in alphabet.randomElement(using: &random) ?? "a" }
        func render(_ body: String, filler: Int) -> [UInt8]? {
            let message = PayloadWorld.message {
                $0.push.prefix = false
                $0.push.content = body
                $0.push.payload = .object([.init("k", .string(String(repeating: "z", count: filler)))])
            }
            return PayloadWorld.template(message, profile: profile)?
                .render(badge: badge, pid: PayloadWorld.pid, receiver: receiver)
        }
        let whole = content.joined()
        let frame = try #require(render(whole, filler: 0)).count
        for _ in 0..<20 {
            let filler = 4096 - frame + Int.random(in: -5...300, using: &random)
            // Whole, else the longest that fits with its `…`; a filler that leaves no room for one is refused.
            let candidates = [whole] + (1..<content.count).reversed().map { content[..<$0].joined() + "…" }
            let expected = candidates.first { candidate in
                frame + filler - Self.escapedCount(whole) + Self.escapedCount(candidate) <= 4096
            }
            let made = try render(whole, filler: filler).flatMap {
                try JSONTree(parsing: $0)["aps"]?["alert"]?["body"]?.string
            }
            #expect(made == expected, "seed \(seed), filler \(filler)")
        }
    }

    /// The body's bytes as JSON writes them.
    private static func escapedCount(_ text: String) -> Int {
        text.utf8.count + text.utf8.count { $0 == 0x22 || $0 == 0x0A }
    }

    /// The rest of the payload leaves room for so much of the body; a body that needs no cut may be as short as it likes.
    @Test(arguments: [PayloadProfile.nim, .rc])
    func aShortBodyNextToManyKeysIsRefusedOnlyIfNothingOfItFits(_ profile: PayloadProfile) throws {
        func render(_ count: Int, body: String) throws -> [UInt8]? {
            let message = PayloadWorld.message {
                $0.push.prefix = false
                $0.push.content = body
                $0.push.payload = .object([.init("k", .string(String(repeating: "z", count: count)))])
            }
            return PayloadWorld.template(message, profile: profile)?
                .render(badge: 5, pid: PayloadWorld.pid, receiver: String(repeating: "u", count: 128))
        }
        let frame = try #require(try render(10, body: "hello")).count - 10
        for room in 0...12 {
            // Of five characters with room for so many bytes.
            let bytes = try render(4096 - frame + 5 - room, body: "hello")
            let body = try bytes.flatMap { try JSONTree(parsing: $0)["aps"]?["alert"]?["body"]?.string }
            let expected = room >= 5 ? "hello" : room == 4 ? "h…" : nil
            #expect(body == expected, "room \(room)")
        }
    }

    @Test func theSendersOwnAlertIsCutToo() throws {
        let long = String(repeating: "y", count: 6000)
        for alert in [JSONValue.string(long), .object([.init("body", .string(long))])] {
            let message = PayloadWorld.message { $0.push.aps = .object([.init("alert", alert)]) }
            #expect(try PayloadWorld.text(message, badge: 1).contains("yyy…\""))
        }
    }

    @Test func aPayloadTooLargeWithoutItsBodyIsRefused() {
        let huge = String(repeating: "z", count: 5000)
        #expect(PayloadWorld.template(PayloadWorld.message { $0.push.title = huge }) == nil)
        #expect(
            PayloadWorld.template(PayloadWorld.message { $0.push.payload = .object([.init("k", .string(huge))]) })
                == nil)
        #expect(
            PayloadWorld.template(PayloadWorld.message { $0.push.aps = .object([.init("k", .string(huge))]) }) == nil)
        #expect(
            PayloadWorld.template(
                PayloadWorld.message {
                    $0.push.silent = true
                    $0.push.payload = .object([.init("k", .string(huge))])
                }) == nil)
        // One character larger than the payload.
        let stack = "a" + String(repeating: "\u{301}", count: 3000)
        #expect(
            PayloadWorld.template(
                PayloadWorld.message {
                    $0.push.content = stack; $0.push.prefix = false
                }) == nil)
    }

    @Test func aLocalisedAlertHasNoBodyToCut() {
        let message = PayloadWorld.message {
            $0.push.aps = .object([
                .init(
                    "alert",
                    .object([
                        .init("loc-key", .string("K")),
                        .init("loc-args", .array([.string(String(repeating: "z", count: 5000))])),
                    ]))
            ])
        }
        #expect(PayloadWorld.template(message) == nil)
    }

    @Test func aReceiverTooLongIsRefusedNotSent() throws {
        let message = PayloadWorld.message { $0.push.content = String(repeating: "x", count: 5000) }
        let template = try #require(PayloadWorld.template(message, profile: .rc))
        let long = String(repeating: "r", count: 5000)
        #expect(template.render(badge: 1, pid: PayloadWorld.pid, receiver: long) == nil)
        let quoted = try #require(template.render(badge: 1, pid: PayloadWorld.pid, receiver: #"q"\"#))
        #expect(try JSONTree(parsing: quoted)["rc"]?["rId"]?.string == #"q"\"#)
    }

    /// Each template is asked for by what it says: languages and keys are the receivers' own words, and there may be
    /// thousands of them in a group.
    @Test(.timeLimit(.minutes(1))) func receiversWordsThatReadTheSameShareOneTemplate() throws {
        let message = PayloadWorld.message { $0.push.force.content = "wake up" }
        var payloads = EventPayloads(message, policy: AppPolicy(id: "im", topic: "t"))
        for number in 0..<2_000 {
            let language = ["en-\(number)", "EN", "zh-Hans-\(number)", "xx-\(number)"][number % 4]
            var variant = PayloadVariant(
                language: language, isHidden: number % 3 == 0, contentKey: number % 2 == 0 ? "work" : "k\(number)",
                isForced: number % 7 == 0)
            variant.mergedCount = number % 5
            let shared = payloads.template(variant, of: message, templates: PayloadWorld.templates)
            let template = try #require(shared, "\(language)")
            let bytes = try #require(template.render(badge: 1, pid: PayloadWorld.pid, receiver: "ben"))
            let alone = try #require(PayloadWorld.template(message, variant, profile: .nim))
            #expect(bytes == alone.render(badge: 1, pid: PayloadWorld.pid, receiver: "ben"), "\(variant)")
        }
        // Too large is remembered as well: encoding a megabyte for each of a thousand receivers would hold up all others.
        let huge = PayloadWorld.message { message in
            message.push.aps = .object([.init("k", .string(String(repeating: "x", count: 1 << 20)))])
        }
        payloads = EventPayloads(huge, policy: AppPolicy(id: "im", topic: "t"))
        // Encoded each time it would be minutes.
        for number in 0..<20_000 {
            let variant = PayloadVariant(language: "en-\(number)", isHidden: true, contentKey: "k\(number)")
            #expect(payloads.template(variant, of: huge, templates: PayloadWorld.templates) == nil)
        }
    }
}
