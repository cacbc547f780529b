import JSON
import Payload
import PushCore
import Testing

@Suite struct SizeTests {
    /// One character each, of many bytes.
    static let family = "👩‍👩‍👧‍👦"

    @Test(arguments: ["a", "é", "e\u{301}", "汉", "🇩🇪", family, "\"", "\n", "\u{1F3F4}\u{E0067}\u{E0062}\u{E007F}"])
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
            let escaped = character == "\"" || character == "\n" ? 2 : character.utf8.count
            #expect(bytes.count + escaped > PayloadTemplate.limit(voip: voip))
        }
    }

    /// Around the border every size is either left whole or cut, and never above the limit.
    @Test func theBorderIsExact() throws {
        var cut = 0
        for count in 3900...4000 {
            let content = String(repeating: "x", count: count)
            let message = PayloadWorld.message { $0.push.content = content }
            let body = try #require(try PayloadWorld.body(message))
            #expect(body == "Anna: " + content || body.hasSuffix("x…"))
            if body.hasSuffix("…") { cut += 1 }
        }
        #expect(cut > 0 && cut < 101)
    }

    @Test func theSendersOwnAlertIsCutToo() throws {
        let long = String(repeating: "y", count: 6000)
        for alert in [JSONValue.string(long), .object([.init("body", .string(long))])] {
            let message = PayloadWorld.message { $0.push.aps = .object([.init("alert", alert)]) }
            #expect(try PayloadWorld.text(message, badge: 1).contains("yyy…\""))
        }
    }

    @Test func whatTheBodyCannotMakeUpForIsTooLarge() {
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
        let long = String(repeating: "r", count: 1000)
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
