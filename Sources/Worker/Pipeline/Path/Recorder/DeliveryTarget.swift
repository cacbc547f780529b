// SPDX-License-Identifier: Apache-2.0
import JSON
import PushCore

/// One device in a record of `im.deliveries` (contract section 3).
struct DeliveryTarget {
    var uid: String
    var device: String
    var connectionEpoch: Int64
    /// Whether the app may raise an alert itself.
    var alert: Bool
    /// Whether APNs has accepted a push for this device.
    var pushed: Bool
    var pushID: PushID?
    /// Only if an ack is wanted.
    var ackByMs: Int64?

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("uid", uid)
        writer.member("device", device)
        writer.member("conn_epoch", connectionEpoch)
        writer.member("alert", alert)
        writer.member("pushed", pushed)
        if let pushID { writer.member("pid", pushID) }
        if let ackByMs { writer.member("ack_by_ms", ackByMs) }
        writer.endObject()
    }

    /// A whole record: the original event and all its devices on one gateway.
    static func writeRecord(
        of targets: [DeliveryTarget], gateway: String, app: String, event raw: [UInt8],
        traceparent: Traceparent? = nil, to writer: inout JSONWriter
    ) {
        writer.beginRecord(app: app)
        writer.member("gateway", gateway)
        if let traceparent { writer.member("traceparent", traceparent.text) }
        writer.key("event")
        writer.raw(raw)
        writer.key("to")
        writer.beginArray()
        for target in targets { target.write(to: &writer) }
        writer.endArray()
        writer.endObject()
    }
}
