/// The request headers that many pushes share: everything but token, apns-id and authorization.
///
/// Made once per event (or once for ever, where nothing varies) and referred to by each push, so that a fan-out to a
/// thousand devices writes its header values once. Immutable, therefore free to cross threads.
public final class PushHeaders: Sendable {
    public let pushType: PushType
    public let priority: PushPriority

    /// Header values as they are sent.
    let topic: [UInt8]
    let expiration: [UInt8]?
    let collapseID: [UInt8]?
    let typeBytes: [UInt8]
    let priorityBytes: [UInt8]

    /// Checks every value, since one bad header byte would cost the whole shared connection.
    ///
    /// - Parameters:
    ///   - topic: `apns-topic` as sent, suffix included (`PushType.topicSuffix`).
    ///   - expirationSeconds: Unix seconds; 0: one attempt, never stored; nil: APNs' own storage policy.
    ///   - collapseID: at most 64 bytes, printable ASCII without blanks at the ends.
    /// - Throws: `PushFault` naming the header.
    public init(
        topic: String, pushType: PushType, priority: PushPriority = .immediate, expirationSeconds: Int64? = nil,
        collapseID: [UInt8]? = nil
    ) throws(PushFault) {
        let topicBytes = Array(topic.utf8)
        guard !topicBytes.isEmpty, topicBytes.count <= 255, topicBytes.allSatisfy(Self.isTopicByte) else {
            throw .badTopic
        }
        if let seconds = expirationSeconds, seconds < 0 { throw .badExpiration }
        if let collapseID, !Self.isCollapseID(collapseID) { throw .badCollapseID }
        // "Specify 5 … for background; 10 is an error" (Apple, Sending notification requests to APNs).
        if pushType == .background, priority == .immediate { throw .badPriority }
        self.topic = topicBytes
        self.pushType = pushType
        self.priority = priority
        self.expiration = expirationSeconds.map { Array(String($0).utf8) }
        self.collapseID = collapseID
        self.typeBytes = Array(pushType.rawValue.utf8)
        self.priorityBytes = Array(String(priority.rawValue).utf8)
    }

    /// Whether a second copy of such a push does no harm, so that one whose fate is unknown may be sent again.
    ///
    /// An alert, a call or a walkie-talkie invitation is shown twice unless a collapse id makes the second replace the
    /// first; the other types carry states, of which the device keeps the newest.
    var isRepeatable: Bool {
        switch pushType {
        case .alert, .voip, .pushtotalk: collapseID != nil
        case .background, .complication, .fileprovider, .location, .liveactivity, .widgets, .controls, .mdm: true
        }
    }

    /// True for what may be sent as `apns-collapse-id`; a caller hashes what may not.
    public static func isCollapseID(_ bytes: [UInt8]) -> Bool {
        guard let first = bytes.first, let last = bytes.last, bytes.count <= 64 else { return false }
        return first != 0x20 && last != 0x20 && bytes.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
    }

    private static func isTopicByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

/// Why a push cannot be sent at all; found before APNs sees it, since each rejection costs the connection streams.
public enum PushFault: Error, Sendable, Equatable {
    case badTopic, badExpiration, badCollapseID, badPriority
    case payloadEmpty
    case payloadTooLarge(max: Int)
    /// Location and Live Activity pushes need token authentication.
    case needsTokenCredential

    /// What is wrong, for people.
    public var text: String {
        switch self {
        case .badTopic: "apns-topic must be 1 to 255 letters, digits, '.', '-' or '_'"
        case .badExpiration: "apns-expiration must not be negative"
        case .badCollapseID: "apns-collapse-id must be 1 to 64 printable ASCII bytes"
        case .badPriority: "a background push must have priority 5 or 1"
        case .payloadEmpty: "the payload is empty"
        case .payloadTooLarge(let max): "the payload is larger than \(max) bytes"
        case .needsTokenCredential: "this push type needs a .p8 key, not a certificate"
        }
    }
}
