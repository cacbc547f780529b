/// `apns-push-type`, with the topic suffix and the payload size that Apple ties to it.
///
/// Sources: "Sending notification requests to APNs", "Generating a remote notification".
public enum PushType: String, Sendable, CaseIterable {
    case alert, background, voip, complication, fileprovider, location, liveactivity, pushtotalk, widgets, controls
    case mdm

    /// What follows the bundle id in `apns-topic`. Empty for `mdm` too, whose topic is no bundle id at all.
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

    /// The topic of pushes of this type to an app.
    public func topic(bundleID: String) -> String { bundleID + "\(topicSuffix)" }

    /// Largest payload in bytes; APNs answers 413 above it.
    public var payloadMax: Int { self == .voip ? 5120 : 4096 }

    /// Location and Live Activity pushes exist with token authentication only.
    public var needsToken: Bool { self == .location || self == .liveactivity }
}

/// `apns-priority`.
public enum PushPriority: UInt8, Sendable {
    /// At once.
    case immediate = 10
    /// With regard to the device's power; the only one a background push may have.
    case considerate = 5
    /// Never wakes the device.
    case passive = 1
}
