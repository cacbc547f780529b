// SPDX-License-Identifier: Apache-2.0
import Crypto
import Digits
import EventLoop

/// A record as a producer writes it: key and JSON text.
package struct Line: Sendable {
    package var key: [UInt8]?
    package var value: [UInt8]?
    /// The Kafka time of the record, Unix ms; nil for now.
    package var timestampMs: Int64?
    /// Of an event: what results name.
    package var id: String

    package init(key: [UInt8]?, value: [UInt8]?, timestampMs: Int64? = nil, id: String = "") {
        self.key = key
        self.value = value
        self.timestampMs = timestampMs
        self.id = id
    }

    package var text: String { String(decoding: value ?? [], as: UTF8.self) }

    /// The same line of another app. The app's topic has its name.
    package func of(_ app: String) -> Line {
        var line = self
        line.value = Array(
            text.replacing(#""app":"im""#, with: "\"app\":\"\(app)\"")
                .replacing("com.example.im", with: "com.example.\(app)").utf8)
        return line
    }
}

/// Now, Unix ms: by the clock of the stage that plays, or else by this machine's.
package var nowMs: Int64 { StageClock.nowMs?() ?? Loop.wallMs() }

/// The clock of a stage in virtual time.
package enum StageClock {
    /// Unix ms.
    @TaskLocal package static var nowMs: (@Sendable () -> Int64)?
}

/// A device's token: the same text for the same words, of Apple's length.
package func token(_ uid: String, _ device: String, _ prefix: String = "") -> String {
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
    package static func message(
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
    package static func revoke(
        _ id: String, of target: String, to: String?, conv: String? = nil, type: String = "p2p",
        badge: String = "decrease", push: String = #""content":"recalled""#, sentMs: Int64? = nil, _ more: String = ""
    ) -> Line {
        let conversation = conv ?? "c-\(to ?? id)"
        let receiver = to.map { ",\"to\":{\"uids\":[\"\($0)\"]}" } ?? ""
        return Self.event(
            "revoke", id, conv: conversation, sentMs: sentMs,
            """
            ,"msg_id":"\(id)","conv":{"id":"\(conversation)","type":"\(type)"},"from":{"uid":"sender","nick":"Nick"}\
            \(receiver),"push":{\(push)},"revoke":{"target_msg_id":"\(target)","badge":"\(badge)"}\(more)
            """)
    }

    package static func activity(_ id: String, to: String, _ la: String, sentMs: Int64? = nil) -> Line {
        Self.event(
            "live_activity", id, conv: "a-\(to)", sentMs: sentMs,
            """
            ,"conv":{"id":"a-\(to)","type":"system"},"to":{"uids":["\(to)"]},"la":{\(la)}
            """)
    }

    /// A record about a Live Activity that names no recipients.
    package static func activityForAll(_ id: String, _ la: String, sentMs: Int64? = nil) -> Line {
        Self.event("live_activity", id, conv: "a-\(id)", sentMs: sentMs, ",\"la\":{\(la)}")
    }

    // MARK: - User state

    package static func state(_ kind: String, _ uid: String, sentMs: Int64? = nil, _ rest: String) -> Line {
        let text = """
            {"v":1,"kind":"\(kind)","app":"im","event_id":"s-\(uid)-\(kind)","sent_ms":\(sentMs ?? nowMs),\
            "uid":"\(uid)",\(rest)}
            """
        return Line(key: Array(uid.utf8), value: Array(text.utf8))
    }

    /// A token for a device of the user; `as`: another token than the usual one.
    package static func bind(
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

    package static func usualToken(_ uid: String, _ device: String, _ type: String) -> String {
        token(uid, type == "alert" ? device : "\(device)/\(type)")
    }

    package static func read(_ uid: String, conv: String? = nil, _ upTo: String) -> Line {
        state("read", uid, "\"conv_id\":\"\(conv ?? "c-\(uid)")\",\(upTo)")
    }

    package static func report(_ uid: String, _ value: Int, clientMs: Int64) -> Line {
        state("badge_report", uid, "\"device\":\"phone\",\"value\":\(value),\"client_ms\":\(clientMs)")
    }

    package static func ack(_ uid: String, _ device: String, _ messages: [String]) -> Line {
        let list = messages.map { "\"\($0)\"" }.joined(separator: ",")
        return state("ack", uid, "\"device\":\"\(device)\",\"conn_epoch\":1,\"msg_ids\":[\(list)]")
    }
}
