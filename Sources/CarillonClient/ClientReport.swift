// SPDX-License-Identifier: Apache-2.0
/// A report of the app to its backend, which writes it to `im.user-state` with the user's id as key
/// (docs/contract/user-state.md).
public struct ClientReport: Sendable, Equatable {
    public enum Kind: String, Sendable {
        /// The user opened the push.
        case opened = "open_report"
        /// The push reached the device: from the service extension.
        case arrived = "arrived_report"
    }

    public var kind: Kind
    public var app: String
    public var uid: String
    public var device: String
    public var pushID: String
    public var messageID: String?
    /// The device's time of it, Unix ms.
    public var atMs: Int64

    public init(
        _ kind: Kind, of push: CarillonPush, app: String, uid: String, device: String, atMs: Int64
    ) {
        self.kind = kind
        self.app = app
        self.uid = uid
        self.device = device
        self.atMs = atMs
        pushID = push.id
        messageID = push.messageID
    }

    /// The record. Its `event_id` is the same whenever this push is reported, so a repeated upload counts once.
    ///
    /// - Parameter sentMs: the backend's time, Unix ms; the device's if nil.
    public func json(sentMs: Int64? = nil) -> String {
        let time = kind == .opened ? "opened_ms" : "arrived_ms"
        var text = "{\"v\":1,\"kind\":\"\(kind.rawValue)\",\"app\":\(Self.quoted(app)),"
        text += "\"event_id\":\(Self.quoted("\(kind == .opened ? "o" : "a")-\(pushID)")),"
        text += "\"sent_ms\":\(sentMs ?? atMs),\"uid\":\(Self.quoted(uid)),\"device\":\(Self.quoted(device)),"
        text += "\"pid\":\(Self.quoted(pushID)),\"\(time)\":\(atMs)"
        if let messageID { text += ",\"msg_id\":\(Self.quoted(messageID))" }
        return text + "}"
    }

    /// RFC 8259 section 7.
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\u{0}"..."\u{1F}":
                let hex = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
