/// The kinds of push that APNs knows, with what each asks of topic and payload.
public enum PushType: String, CaseIterable, Sendable {
    case alert, background, voip, complication, fileprovider, location, liveactivity, pushtotalk, widgets, controls, mdm

    /// What the topic carries behind the bundle identifier; nil where the topic is no bundle identifier at all.
    var topicSuffix: StaticString? {
        switch self {
        case .alert, .background: ""
        case .voip: ".voip"
        case .complication: ".complication"
        case .fileprovider: ".pushkit.fileprovider"
        case .location: ".location-query"
        case .liveactivity: ".push-type.liveactivity"
        case .pushtotalk: ".voip-ptt"
        case .widgets: ".push-type.widgets"
        case .controls: ".push-type.controls"
        case .mdm: nil
        }
    }

    /// Largest payload in bytes ("Generating a remote notification").
    public var payloadBytesMax: Int { self == .voip ? 5120 : 4096 }

    /// The type of a header value; nil for an unknown one.
    init?(_ value: ArraySlice<UInt8>) {
        // The two that nearly all traffic is made of first.
        if value.elementsEqual("alert".utf8) {
            self = .alert
        } else if value.elementsEqual("background".utf8) {
            self = .background
        } else {
            self.init(rawValue: String(decoding: value, as: UTF8.self))
        }
    }
}
