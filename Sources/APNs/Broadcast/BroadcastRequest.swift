// SPDX-License-Identifier: Apache-2.0
/// Requests about the broadcast channels of an app (iOS 18, Live Activities).
///
/// Sources: "Sending channel management requests to APNs", "Sending broadcast push notification requests to APNs".
/// Channels have a separate host and port (`APNsEndpoint.channels…`); a broadcast uses the host of pushes.
public enum BroadcastRequest: Sendable, Equatable {
    /// Creates a channel. Its policy can never be changed. At most 10 000 per app and environment.
    case create(keepsLast: Bool)
    /// Reads the policy of a channel.
    case read(channel: String)
    /// Deletes a channel.
    case delete(channel: String)
    /// Lists all channels of the app.
    case list
    /// Sends one push to all subscribers of the channel, at most 5120 bytes.
    ///
    /// `expirationSeconds` must be 0 for a channel without storage. A broadcast cannot start an activity.
    case send(channel: String, payload: [UInt8], expirationSeconds: Int64, priority: PushPriority)

    /// Largest payload of a broadcast ("at most 5 KB").
    public static var payloadMax: Int { PushType.broadcastPayloadMax }

    /// The reason why APNs would certainly refuse it; nil if it can be sent.
    public func problem(bundleID: String) -> String? {
        guard !bundleID.isEmpty, bundleID.utf8.allSatisfy({ Self.isWordByte($0) }) else {
            return "the bundle id '\(bundleID)' cannot be part of a path"
        }
        switch self {
        case .create, .list: return nil
        case .read(let channel), .delete(let channel): return Self.channelProblem(channel)
        case .send(let channel, let payload, let expirationSeconds, _):
            if payload.isEmpty { return "the payload is empty" }
            if payload.count > Self.payloadMax { return "the payload has more than \(Self.payloadMax) bytes" }
            if expirationSeconds < 0 { return "the expiration is negative" }
            return Self.channelProblem(channel)
        }
    }

    /// Base64, as APNs returns it.
    private static func channelProblem(_ channel: String) -> String? {
        isChannel(channel) ? nil : "'\(channel)' is not a channel id (base64)"
    }

    static func isChannel(_ channel: String) -> Bool {
        !channel.isEmpty && channel.utf8.count <= 128
            && channel.utf8.allSatisfy { isWordByte($0) || [0x2B, 0x2F, 0x3D].contains($0) }
    }

    private static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
        default: false
        }
    }

    var method: String {
        switch self {
        case .create, .send: "POST"
        case .read, .list: "GET"
        case .delete: "DELETE"
        }
    }

    func path(bundleID: String) -> String {
        switch self {
        case .create, .read, .delete: "/1/apps/\(bundleID)/channels"
        case .list: "/1/apps/\(bundleID)/all-channels"
        case .send: "/4/broadcasts/apps/\(bundleID)"
        }
    }

    var channel: String? {
        switch self {
        case .create, .list: nil
        case .read(let channel), .delete(let channel), .send(let channel, _, _, _): channel
        }
    }

    var body: [UInt8] {
        switch self {
        case .create(let keepsLast):
            Array(#"{"message-storage-policy":\#(keepsLast ? 1 : 0),"push-type":"LiveActivity"}"#.utf8)
        case .send(_, let payload, _, _): payload
        case .read, .delete, .list: []
        }
    }
}

/// APNs' answer to a broadcast request.
public struct BroadcastAnswer: Sendable, Equatable {
    public internal(set) var status = 0
    /// The id of a created channel.
    public internal(set) var channel: String?
    /// Identifies the request for Apple's support.
    public internal(set) var requestID: String?
    /// The raw body: JSON, with a `reason` if the request was refused.
    public internal(set) var body: [UInt8] = []

    /// 200, 201, 204.
    public var isDone: Bool { (200...299).contains(status) }
}

extension APNsEndpoint {
    /// Apple's host for channel management.
    public static var channels: APNsEndpoint { APNsEndpoint(host: "api-manage-broadcast.push.apple.com", port: 2196) }
    public static var channelsSandbox: APNsEndpoint {
        APNsEndpoint(host: "api-manage-broadcast.sandbox.push.apple.com", port: 2195)
    }
}
