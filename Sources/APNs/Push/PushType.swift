/// `apns-push-type`, with the topic suffix and the payload size that Apple ties to it.
public enum PushType: String, Sendable, CaseIterable {
    case alert, background, voip, complication, fileprovider, location, liveactivity, pushtotalk, widgets, controls
    case mdm

    /// What follows the bundle id in `apns-topic` ("Sending notification requests to APNs").
    public var topicSuffix: String {
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
