/// The request headers that many pushes share: everything but token, apns-id and authorization.
///
/// Made once per event (or once for ever, where nothing varies) and referred to by each push, so that a fan-out to a
/// thousand devices writes its header values once. Immutable, therefore free to cross threads.
public final class PushHeaders: Sendable {
    let common: PushTopic
    /// Unix seconds; nil: the header is not sent.
    let expirationSeconds: Int64?
    /// As it is sent.
    let collapseID: [UInt8]?

    public var pushType: PushType { common.pushType }
    public var priority: PushPriority { common.priority }

    /// Checks every value, since one bad header byte would cost the whole shared connection.
    ///
    /// - Parameters:
    ///   - common: topic, push type and priority.
    ///   - expirationSeconds: Unix seconds; 0: one attempt, never stored; nil: APNs' own storage policy.
    ///   - collapseID: at most 64 bytes, printable ASCII without blanks at the ends.
    /// - Throws: `PushFault` naming the header.
    public init(
        _ common: PushTopic, expirationSeconds: Int64? = nil, collapseID: [UInt8]? = nil
    ) throws(PushFault) {
        if let seconds = expirationSeconds, seconds < 0 { throw .badExpiration }
        if let collapseID, !Self.isCollapseID(collapseID) { throw .badCollapseID }
        self.common = common
        self.expirationSeconds = expirationSeconds
        self.collapseID = collapseID
    }

    /// As the other, for a topic that is used once.
    public convenience init(
        topic: String, pushType: PushType, priority: PushPriority = .immediate, expirationSeconds: Int64? = nil,
        collapseID: [UInt8]? = nil
    ) throws(PushFault) {
        try self.init(
            PushTopic(topic, pushType: pushType, priority: priority), expirationSeconds: expirationSeconds,
            collapseID: collapseID)
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
