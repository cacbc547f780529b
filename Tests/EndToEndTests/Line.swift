import Crypto
import Digits
import EventLoop

/// A record as a producer writes it: key and JSON text.
struct Line: Sendable {
    var key: [UInt8]?
    var value: [UInt8]?
    /// The Kafka time of the record, Unix ms; nil for now.
    var timestampMs: Int64?
    /// Of an event: what results name.
    var id = ""

    var text: String { String(decoding: value ?? [], as: UTF8.self) }
}

/// Now, Unix ms.
var nowMs: Int64 { Loop.wallMs() }

/// A device's token: the same text for the same words, of Apple's length.
func token(_ uid: String, _ device: String, _ prefix: String = "") -> String {
    let hex = Hex.string(SHA256.hash(Array("\(uid)/\(device)".utf8)))
    return prefix + hex.dropFirst(prefix.count)
}

extension Line {
    private static func event(
        _ kind: String, _ id: String, conv: String, sentMs: Int64?, app: String = "im", _ rest: String
    ) -> Line {
        let text = """
            {"v":1,"kind":"\(kind)","app":"\(app)","event_id":"e-\(id)","sent_ms":\(sentMs ?? nowMs)\(rest)}
            """
        return Line(key: Array(conv.utf8), value: Array(text.utf8), id: "e-\(id)")
    }

    /// A message with `msg_id` id and `event_id` e-id.
    static func message(
        _ id: String, to: [String]?, from: String = "sender", conv: String? = nil, type: String = "p2p",
        seq: Int64? = nil, push: String = #""content":"hello""#, sentMs: Int64? = nil, event: String? = nil,
        _ more: String = ""
    ) -> Line {
        let conversation = conv ?? "c-\(to?.first ?? id)"
        let receivers = to.map { uids in ",\"to\":{\"uids\":[\(uids.map { "\"\($0)\"" }.joined(separator: ","))]}" }
        let sequence = seq.map { ",\"server_seq\":\($0)" } ?? ""
        return Self.event(
            "message", event ?? id, conv: conversation, sentMs: sentMs,
            """
            ,"msg_id":"\(id)"\(sequence),"conv":{"id":"\(conversation)","type":"\(type)"},"from":{"uid":"\(from)","nick":"Nick"}\
            \(receivers ?? ""),"type_name":"RC:TxtMsg","push":{\(push)}\(more)
            """)
    }

    /// A revoke of `target`.
    static func revoke(
        _ id: String, of target: String, to: String, conv: String? = nil, badge: String = "decrease",
        push: String = #""content":"recalled""#, sentMs: Int64? = nil, _ more: String = ""
    ) -> Line {
        let conversation = conv ?? "c-\(to)"
        return Self.event(
            "revoke", id, conv: conversation, sentMs: sentMs,
            """
            ,"msg_id":"\(id)","conv":{"id":"\(conversation)","type":"p2p"},"from":{"uid":"sender","nick":"Nick"},\
            "to":{"uids":["\(to)"]},"push":{\(push)},"revoke":{"target_msg_id":"\(target)","badge":"\(badge)"}\(more)
            """)
    }

    static func activity(_ id: String, to: String, _ la: String, sentMs: Int64? = nil) -> Line {
        Self.event(
            "live_activity", id, conv: "a-\(to)", sentMs: sentMs,
            """
            ,"conv":{"id":"a-\(to)","type":"system"},"to":{"uids":["\(to)"]},"la":{\(la)}
            """)
    }

    /// A record about a Live Activity that names no recipients.
    static func activityForAll(_ id: String, _ la: String, sentMs: Int64? = nil) -> Line {
        Self.event("live_activity", id, conv: "a-\(id)", sentMs: sentMs, ",\"la\":{\(la)}")
    }

    // MARK: - User state

    static func state(_ kind: String, _ uid: String, sentMs: Int64? = nil, _ rest: String) -> Line {
        let text = """
            {"v":1,"kind":"\(kind)","app":"im","event_id":"s-\(uid)-\(kind)","sent_ms":\(sentMs ?? nowMs),\
            "uid":"\(uid)",\(rest)}
            """
        return Line(key: Array(uid.utf8), value: Array(text.utf8))
    }

    /// A token for a device of the user; `as`: another token than the usual one.
    static func bind(
        _ uid: String, _ device: String = "phone", type: String = "alert", as hex: String? = nil, version: Int = 1,
        sentMs: Int64? = nil, _ more: String = ""
    ) -> Line {
        state(
            "bind", uid, sentMs: sentMs ?? nowMs - 60_000,
            """
            "token":{"device":"\(device)","token":"\(hex ?? Self.usualToken(uid, device, type))","env":"production",\
            "topic":"com.example.im","type":"\(type)","bind_ver":\(version),"lang":"en"\(more)}
            """)
    }

    static func usualToken(_ uid: String, _ device: String, _ type: String) -> String {
        token(uid, type == "alert" ? device : "\(device)/\(type)")
    }

    static func read(_ uid: String, conv: String? = nil, _ upTo: String) -> Line {
        state("read", uid, "\"conv_id\":\"\(conv ?? "c-\(uid)")\",\(upTo)")
    }

    static func report(_ uid: String, _ value: Int, clientMs: Int64) -> Line {
        state("badge_report", uid, "\"device\":\"phone\",\"value\":\(value),\"client_ms\":\(clientMs)")
    }

    static func ack(_ uid: String, _ device: String, _ messages: [String]) -> Line {
        let list = messages.map { "\"\($0)\"" }.joined(separator: ",")
        return state("ack", uid, "\"device\":\"\(device)\",\"conn_epoch\":1,\"msg_ids\":[\(list)]")
    }
}

/// The Redis commands by which a gateway tells of a connection.
enum Gateway {
    static func lease(_ gateway: String, epoch: Int = 1) -> String { "SET gw:{\(gateway)} \(epoch) EX 3600" }

    static func presence(
        _ uid: String, _ device: String, state: String = "fg", platform: String = "ios", gateway: String,
        activeConversation: String = "-", flags: String = "-", since: Int64? = nil
    ) -> String {
        let fields = [
            state, platform, gateway, "1", "1", String(nowMs), since.map { String($0) } ?? "-", activeConversation,
            flags,
        ]
        return "HSET p:{im:\(uid)} \(device) \(fields.joined(separator: ","))"
    }

    static func off(_ uid: String, _ device: String) -> String { "HDEL p:{im:\(uid)} \(device)" }
}
