// SPDX-License-Identifier: Apache-2.0
/// `apns-push-type`, with its topic suffix and payload limit.
///
/// Sources: "Sending notification requests to APNs", "Generating a remote notification".
public enum PushType: String, Sendable, CaseIterable {
    case alert, background, voip, complication, fileprovider, location, liveactivity, pushtotalk, widgets, controls
    case mdm

    /// The suffix after the bundle id in `apns-topic`. Also empty for `mdm`, where the topic is not a bundle id.
    public var topicSuffix: StaticString {
        switch self {
        case .alert, .background, .mdm: ""
        case .voip: ".voip"
        case .complication: ".complication"
        case .fileprovider: ".pushkit.fileprovider"
        case .location: ".location-query"
        case .liveactivity: ".push-type.liveactivity"
        case .pushtotalk: ".voip-ptt"
        case .widgets: ".push-type.widgets"
        case .controls: ".push-type.controls"
        }
    }

    /// The topic for pushes of this type to an app.
    public func topic(bundleID: String) -> String { bundleID + "\(topicSuffix)" }

    /// Largest payload in bytes. APNs answers 413 above it.
    public var payloadMax: Int { self == .voip ? 5120 : 4096 }

    /// Largest payload in bytes of a push to a broadcast channel.
    public static var broadcastPayloadMax: Int { 5120 }

    /// Location and Live Activity pushes require token authentication.
    public var needsToken: Bool { self == .location || self == .liveactivity }
}

/// `apns-priority`.
public enum PushPriority: UInt8, Sendable {
    /// Immediate delivery.
    case immediate = 10
    /// Delivery that saves power. Required for a background push.
    case considerate = 5
    /// Never wakes the device.
    case passive = 1
}
