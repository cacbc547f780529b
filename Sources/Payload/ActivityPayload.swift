// SPDX-License-Identifier: Apache-2.0
import APNsProtocol
import JSON
public import PushCore

/// The payload of a Live Activity push, the same for every receiver (Apple: "Starting and updating Live Activities with
/// ActivityKit push notifications").
public enum ActivityPayload {
    /// - Returns: nil above Apple's 4096 bytes (`payload_too_large`), because a state cannot be cut.
    public static func encode(_ activity: borrowing LiveActivity, sentMs: Int64) -> [UInt8]? {
        var writer = JSONWriter(reservingCapacity: 512)
        writer.beginObject()
        writer.key("aps")
        writer.beginObject()
        // Seconds. A device drops an update that is older than the one it shows.
        writer.member("timestamp", sentMs / 1000)
        writer.member("event", activity.action.rawValue)
        writer.member(.init("content-state", activity.state))
        if activity.action == .start {
            writer.member("attributes-type", ifPresent: activity.attributesType)
            if let attributes = activity.attributes { writer.member(.init("attributes", attributes)) }
            switch activity.input {
            case .unsaid: break
            case .token: writer.member("input-push-token", 1)
            case .channel(let id): writer.member("input-push-channel", id)
            }
        }
        if let alert = activity.alert { writer.member(.init("alert", alert)) }
        if let staleMs = activity.staleMs { writer.member("stale-date", staleMs / 1000) }
        if let dismissalMs = activity.dismissalMs, activity.action == .end {
            writer.member("dismissal-date", dismissalMs / 1000)
        }
        if let relevance = activity.relevance { writer.member(.init("relevance-score", .number(relevance))) }
        writer.endObject()
        writer.endObject()
        let limit = activity.channel == nil ? PayloadTemplate.limit(voip: false) : PushType.broadcastPayloadMax
        return writer.count <= limit ? writer.bytes : nil
    }
}
