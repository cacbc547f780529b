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

    @Test func anEventEncodesAVariantOnce() {
        let message = PayloadWorld.message()
        var payloads = EventPayloads(message, policy: AppPolicy(id: "im", topic: "t"))
        for number in 0..<100 {
            let variant = PayloadVariant(language: "l\(number % 50)", isHidden: number % 2 == 0)
            #expect(payloads.template(variant, of: message, templates: PayloadWorld.templates) != nil)
        }
    }
}
