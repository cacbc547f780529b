// SPDX-License-Identifier: Apache-2.0
public import JSON
public import Payload

/// A record of `push.sms`: a request for an SMS in place of a push (contract section 3).
public struct SMSRecord: Sendable, Equatable {
    public var app: String
    public var eventID: String
    public var msgID: String
    public var uid: String
    public var reason: Reason
    /// From the user's settings; nil if the SMS sender knows it.
    public var phone: String?
    /// The text of the alert.
    public var text: ShownText
    public var atMs: Int64

    public enum Reason: String, Sendable, CaseIterable {
        case noToken = "no_token"
        case allFailed = "all_failed"
    }

    public init(
        app: String, eventID: String, msgID: String, uid: String, reason: Reason, phone: String?, text: ShownText,
        atMs: Int64
    ) {
        self.app = app
        self.eventID = eventID
        self.msgID = msgID
        self.uid = uid
        self.reason = reason
        self.phone = phone
        self.text = text
        self.atMs = atMs
    }

    public func write(to writer: inout JSONWriter) {
        writer.beginRecord(app: app, eventID: eventID)
        writer.member("msg_id", msgID)
        writer.member("uid", uid)
        writer.member("reason", reason.rawValue)
        writer.member("phone", ifPresent: phone)
        writer.member("title", ifPresent: text.title)
        writer.member("body", ifPresent: text.body)
        writer.member("at_ms", atMs)
        writer.endObject()
    }
}
