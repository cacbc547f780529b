// SPDX-License-Identifier: Apache-2.0
import APNs
import JSON
import PushCore

/// One outcome of (event, device) as a record of `push.results` (contract section 3).
struct OutcomeRecord {
    var uid: String
    var device: String?
    var verdict: Verdict
    /// A `Reason`, or APNs' own word.
    var reason: String
    /// The reason as a metric's label, from a closed set.
    var label: String
    var pushID: PushID?
    var apnsID: PushID?
    var status: Int?
    var badge: Int64?
    /// The name of the push's credential set.
    var credential: String?
    var attempts = 0
    /// From the original record's Kafka time to the outcome.
    var latencyMs: Int64 = 0

    /// Begins a record's JSON: the common part of all records of an event.
    static func begin(in writer: inout JSONWriter, app: String, eventID: String, msgID: String) {
        writer.beginRecord(app: app, eventID: eventID)
        writer.member("msg_id", msgID)
    }

    /// The rest of a record.
    func finish(in writer: inout JSONWriter, atMs: Int64) {
        writer.member("uid", uid)
        writer.member("device", ifPresent: device)
        writer.member("verdict", verdict.rawValue)
        writer.member("reason", reason)
        if let pushID { writer.member("pid", pushID) }
        if let apnsID { writer.member("apns_id", apnsID) }
        if let status { writer.member("status", Int64(status)) }
        if let badge { writer.member("badge", badge) }
        writer.member("credential", ifPresent: credential)
        writer.member("attempts", Int64(attempts))
        writer.member("latency_ms", latencyMs)
        writer.member("at_ms", atMs)
        writer.endObject()
    }
}

extension OutcomeRecord {
    init(uid: String, device: String? = nil, verdict: Verdict, reason: String) {
        self.init(uid: uid, device: device, verdict: verdict, reason: reason, label: reason)
    }

    init(uid: String, device: String? = nil, verdict: Verdict, reason: Reason) {
        self.init(uid: uid, device: device, verdict: verdict, reason: reason.rawValue)
    }
}

extension JSONWriter {
    mutating func member(_ name: StaticString, _ id: PushID) {
        key(name)
        string(plain: PushID.textCount) { id.write(to: $0) }
    }

    /// A word without escapes.
    mutating func member(_ name: StaticString, _ lane: PushLane) {
        key(name)
        lane.name.withUTF8Buffer { string(UnsafeRawBufferPointer($0)) }
    }
}
