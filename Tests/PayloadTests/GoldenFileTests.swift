// SPDX-License-Identifier: Apache-2.0
import JSON
import Payload
import PushCore
import Support
import Testing

/// Each kind of push in each profile, as written down in `Tests/Cases/payloads`, and by Apple's rules.
@Suite struct GoldenFileTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var kind: Kind
        var profile: PayloadProfile

        var testDescription: String { name }
        var name: String { "\(kind.rawValue)-\(profile.rawValue)" }

        static let all = Kind.allCases.flatMap { kind in
            [PayloadProfile.nim, .rc, .wps, .raw].map { Case(kind: kind, profile: $0) }
        }
    }

    enum Kind: String, CaseIterable, Sendable {
        /// `stalerevoke`: of a message that this receiver's badge did not hold. `communication`: of an app with that on, whose
        /// client counts.
        /// `text`: the payload is a text; `spelled`: one that spells an object. `picture`: with subtitle and image.
        /// `sendercounts`: of an app with `badge: sender`.
        case message, group, forced, hidden, silent, call, revoke, stalerevoke, communication
        case text, spelled, picture, sendercounts
    }

    @Test(arguments: Case.all)
    func isAsWrittenDown(_ golden: Case) throws {
        let (message, variant, badge) = Self.push(golden.kind)
        var policy = AppPolicy(id: "im", topic: "t")
        policy.profile = golden.profile
        policy.communication = golden.kind == .communication
        policy.badge =
            golden.kind == .communication ? .client : golden.kind == .sendercounts ? .sender : .server
        var payloads = EventPayloads(message, policy: policy)
        let encoded = payloads.template(variant, of: message, templates: PayloadWorld.templates)
        let template = try #require(encoded)
        let bytes = try #require(template.render(badge: badge, pid: PayloadWorld.pid, receiver: "ben"))
        let wanted = try Cases.text("payloads/\(golden.name).json")
        let made = String(decoding: bytes, as: UTF8.self)
        let text = made.split(separator: PayloadWorld.pid.description, omittingEmptySubsequences: false)
        #expect(try Self.sorted(text.joined(separator: "PID")) == Self.sorted(wanted), "\(made)")
        let kind: AppleRules.Kind = message.push.voip ? .voip : message.push.silent ? .background : .alert
        #expect(AppleRules.problems(of: bytes, kind) == [])
    }

    @Test(arguments: [LiveActivity.Action.start, .update, .end])
    func anActivityIsAsWrittenDown(_ action: LiveActivity.Action) throws {
        let activity = LiveActivity(
            uids: ["ben"], activityID: "a1", action: action, state: .object([.init("eta", .number("7"))]),
            attributesType: "Ride", attributes: .object([.init("car", .string("B 1"))]),
            alert: .object([.init("title", .string("Ride")), .init("body", .string("It comes"))]),
            staleMs: 1_700_000_060_000, dismissalMs: 1_700_000_120_999, relevance: "0.5")
        let bytes = try #require(ActivityPayload.encode(activity, sentMs: 1_700_000_000_999))
        let wanted = try Cases.text("payloads/activity-\(action.rawValue).json")
        #expect(try Self.sorted(String(decoding: bytes, as: UTF8.self)) == Self.sorted(wanted))
        #expect(AppleRules.problems(of: bytes, .liveactivity) == [])
    }

    @Test(arguments: [LiveActivity.Input.token, .channel("dHN0LXNyY2gtY2hubA==")])
    func aStartSaysHowItsUpdatesCome(_ input: LiveActivity.Input) throws {
        for action in [LiveActivity.Action.start, .update, .end] {
            let activity = LiveActivity(
                uids: ["ben"], activityID: "a1", action: action, state: .object([]), attributesType: "Ride",
                attributes: .object([]), input: input)
            let bytes = try #require(ActivityPayload.encode(activity, sentMs: 1000))
            let aps = try #require(try JSONTree(parsing: bytes)["aps"])
            #expect(AppleRules.problems(of: bytes, .liveactivity) == [])
            let isStart = action == .start
            #expect(aps["input-push-token"]?.int == (isStart && input == .token ? 1 : nil))
            #expect(
                aps["input-push-channel"]?.string == (isStart && input != .token ? "dHN0LXNyY2gtY2hubA==" : nil))
        }
    }

    /// The message of a kind, the reader it is for, and his badge.
    private static func push(_ kind: Kind) -> (Message, PayloadVariant, Int64?) {
        let team = Conversation(id: "team", type: .group)
        let message = PayloadWorld.message { message in
            switch kind {
            case .message:
                message.push.title = "Lunch"
                message.push.content = "See you at one"
                message.push.payload = .object([.init("room", .number("7")), .init("jump", .string("chat"))])
            case .group:
                message.conversation = team
                message.typeName = "RC:ImgMsg"
                message.push.content = nil
                message.push.sound = ""
                message.push.category = "reply"
                message.push.interruption = "time-sensitive"
            case .forced:
                message.conversation = team
                message.push.force = .init(mode: .all, content: "Wake up")
                message.push.aps = .object([
                    .init("relevance-score", .number("0.5")), .init("badge", .number("99")),
                    .init("alert", .object([.init("subtitle", .string("Team")), .init("body", .string("no"))])),
                ])
            case .hidden:
                message.push.title = "Secret"
                message.push.aps = .object([.init("alert", .string("secret")), .init("subtitle", .string("secret"))])
                message.push.payload = .object([.init("room", .number("7"))])
            case .silent:
                message.push.silent = true
                message.push.sound = "ping.caf"
                message.push.payload = .object([.init("sync", .number("1"))])
            case .call:
                message.push.voip = true
                message.push.content = "Call"
                message.push.sound = "ring.caf"
                message.push.payload = .object([.init("call", .string("c1"))])
            case .revoke, .stalerevoke:
                message.kind = .revoke
                message.revoke = .init(targetMsgID: "m0", badge: .decrease)
                message.typeName = "RC:RcNtf"
                message.push.content = "took it back"
                message.push.payload = .object([.init("apns-collapse-id", .string("x"))])
            case .communication:
                message.conversation = Conversation(id: "team", type: .group, name: "The\u{202e} Team")
                message.from.avatar = "https://a.example/anna.png"
                // The sender cannot set it.
                message.push.payload = .object([.init("im", .object([]))])
            case .text:
                message.push.payload = .text("a \"quoted\" text", members: nil)
            case .spelled:
                message.push.payload = .text(
                    #"{"room":7,"pushTitle":"Team"}"#,
                    members: [.init("room", .number("7")), .init("pushTitle", .string("Team"))])
            case .picture:
                message.push.subtitle = "Photo"
                message.push.image = "https://a.example/1.png"
                message.push.payload = .object([.init("image", .string("own")), .init("room", .number("7"))])
            case .sendercounts:
                message.push.aps = .object([.init("badge", .number("42"))])
            }
        }
        switch kind {
        case .message: return (message, PayloadWorld.english, 3)
        case .group: return (message, PayloadWorld.english, 1)
        case .forced: return (message, PayloadVariant(language: "en", isForced: true), 2)
        case .hidden: return (message, PayloadVariant(language: "en", isHidden: true, contentKey: "work"), 3)
        case .silent: return (message, PayloadWorld.english, 3)
        case .call: return (message, PayloadWorld.english, nil)
        case .revoke:
            var variant = PayloadWorld.english
            variant.lowersBadge = true
            return (message, variant, 2)
        case .stalerevoke: return (message, PayloadWorld.english, 2)
        case .communication: return (message, PayloadWorld.english, 7)
        case .text, .spelled, .picture, .sendercounts: return (message, PayloadWorld.english, 3)
        }
    }

    /// The order of keys is no part of what is written down.
    private static func sorted(_ text: String) throws -> JSONTree {
        func sorted(_ tree: JSONTree) -> JSONTree {
            switch tree {
            case .object(let members):
                .object(members.map { .init($0.key, sorted($0.value)) }.sorted { $0.key < $1.key })
            case .array(let elements): .array(elements.map(sorted))
            case .null, .bool, .number, .string: tree
            }
        }
        return sorted(try JSONTree(parsing: Array(text.utf8)))
    }

    /// The checker itself: one broken payload for each of its rules.
    @Test(arguments: [
        (#"[]"#, "alert", "no JSON object"), (#"{"a":1}"#, "alert", "no aps"), (#"{"aps":{}}"#, "alert", "no alert"),
        (#"{"aps":{"alert":"x","alert":"y"}}"#, "alert", "a key is repeated, or there are blanks"),
        (#"{"aps":{"alert":7}}"#, "alert", "aps.alert is wrong"),
        (#"{"aps":{"alert":{"body":7}}}"#, "alert", "aps.alert.body is wrong"),
        (#"{"aps":{"alert":{"loc-args":[7]}}}"#, "alert", "aps.alert.loc-args is wrong"),
        (#"{"aps":{"alert":{"text":""}}}"#, "alert", "unknown key aps.alert.text"),
        (#"{"aps":{"alert":"x","badge":-1}}"#, "alert", "aps.badge is wrong"),
        (#"{"aps":{"alert":"x","badge":"1"}}"#, "alert", "aps.badge is wrong"),
        (#"{"aps":{"alert":"x","sound":{"loud":1}}}"#, "alert", "aps.sound is wrong"),
        (#"{"aps":{"alert":"x","sound":""}}"#, "alert", "aps.sound is wrong"),
        (#"{"aps":{"alert":"x","thread-id":1}}"#, "alert", "aps.thread-id is wrong"),
        (#"{"aps":{"alert":"x","mutable-content":true}}"#, "alert", "aps.mutable-content is wrong"),
        (#"{"aps":{"alert":"x","interruption-level":"loud"}}"#, "alert", "aps.interruption-level is wrong"),
        (#"{"aps":{"alert":"x","relevance-score":2}}"#, "alert", "aps.relevance-score is wrong"),
        (#"{"aps":{"alert":"x","event":"end"}}"#, "alert", "aps.event is wrong"),
        (#"{"aps":{"alert":"x","k":1}}"#, "alert", "unknown key aps.k"),
        (#"{"aps":{"content-available":1,"badge":1}}"#, "background", "a background push shows something"),
        (
            #"{"aps":{"timestamp":1,"event":"update","content-state":{},"badge":1}}"#, "liveactivity",
            "an activity has no badge"
        ),
        (#"{"aps":{"event":"update","content-state":{}}}"#, "liveactivity", "no timestamp"),
        (
            #"{"aps":{"timestamp":1,"event":"start","content-state":{},"attributes":{}}}"#, "liveactivity",
            "attributes-type at start"
        ),
        (
            #"{"aps":{"timestamp":1,"event":"update","content-state":{},"dismissal-date":1}}"#, "liveactivity",
            "dismissal-date at update"
        ),
        (
            #"{"aps":{"timestamp":1,"event":"update","content-state":{},"input-push-token":1}}"#, "liveactivity",
            "input-push-token at update"
        ),
    ])
    func applesRulesCanFail(payload: String, kind: String, problem: String) throws {
        let kind = try #require(AppleRules.Kind(rawValue: kind))
        #expect(AppleRules.problems(of: Array(payload.utf8), kind) == [problem])
    }

    @Test func applesSizesAreChecked() {
        func payload(_ count: Int) -> [UInt8] {
            Array((#"{"aps":{"alert":""# + String(repeating: "x", count: count - 20) + #""}}"#).utf8)
        }
        #expect(AppleRules.problems(of: payload(4096), .alert) == [])
        #expect(AppleRules.problems(of: payload(4097), .alert) == ["4097 bytes"])
        #expect(AppleRules.problems(of: payload(5120), .voip) == [])
        #expect(AppleRules.problems(of: payload(5121), .voip) == ["5121 bytes"])
    }
}
