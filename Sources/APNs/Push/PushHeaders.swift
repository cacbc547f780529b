// SPDX-License-Identifier: Apache-2.0
/// The request headers that many pushes share: all except token, apns-id and authorization.
///
/// Created once per event (or once for all, if nothing varies) and referenced by each push, so that a fan-out to a
/// thousand devices writes its header values once. Immutable, so any thread may use it.
public final class PushHeaders: Sendable {
    let common: PushTopic
    /// Unix seconds; nil omits the header.
    let expirationSeconds: Int64?
    /// As sent.
    let collapseID: [UInt8]?
    /// The push goes to it, and to no device; nil: to the push's token.
    let channel: PushChannel?

    public var pushType: PushType { common.pushType }
    public var priority: PushPriority { common.priority }
    var backoffKind: TokenBackoff.Kind { TokenBackoff.Kind(pushType, collapseID: collapseID) }

    /// Checks every value, because one bad header byte would cost the whole shared connection.
    ///
    /// - Parameters:
    ///   - common: topic, push type and priority.
    ///   - expirationSeconds: Unix seconds. 0: one attempt, never stored. Nil: APNs' own storage policy.
    ///   - collapseID: at most 64 bytes, printable ASCII without surrounding spaces.
    ///   - channel: of a broadcast, which has no topic and no collapse id.
    /// - Throws: `PushFault` naming the header.
    public init(
        _ common: PushTopic, expirationSeconds: Int64? = nil, collapseID: [UInt8]? = nil, channel: PushChannel? = nil
    ) throws(PushFault) {
        if let seconds = expirationSeconds, seconds < 0 { throw .badExpiration }
        if let collapseID, !Self.isCollapseID(collapseID) { throw .badCollapseID }
        self.common = common
        self.expirationSeconds = expirationSeconds
        self.collapseID = collapseID
        self.channel = channel
    }

    /// The headers of a push without content (`PushTable.dropContent`).
    init(bare common: PushTopic) {
        self.common = common
        expirationSeconds = nil
        collapseID = nil
        channel = nil
    }

    /// Like the other, for a topic that is used once.
    public convenience init(
        topic: String, pushType: PushType, priority: PushPriority = .immediate, expirationSeconds: Int64? = nil,
        collapseID: [UInt8]? = nil
    ) throws(PushFault) {
        try self.init(
            PushTopic(topic, pushType: pushType, priority: priority), expirationSeconds: expirationSeconds,
            collapseID: collapseID)
    }

    /// Whether a second copy of the push does no harm, so that a push with an unknown result may be sent again.
    ///
    /// An alert, a call or a walkie-talkie invitation appears twice unless a collapse id makes the second replace the
    /// first. The other types carry states, and the device keeps the newest.
    var isRepeatable: Bool {
        switch pushType {
        case .alert, .voip, .pushtotalk: collapseID != nil
        case .background, .complication, .fileprovider, .location, .liveactivity, .widgets, .controls, .mdm: true
        }
    }

    /// - Returns: whether the bytes are valid as `apns-collapse-id`. A caller hashes an invalid id.
    public static func isCollapseID(_ bytes: [UInt8]) -> Bool {
        guard let first = bytes.first, let last = bytes.last, bytes.count <= 64 else { return false }
        return first != 0x20 && last != 0x20 && bytes.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
    }
}

/// The reason why a push cannot be sent. Found before APNs sees it, because each rejection costs the connection
/// streams.
public enum PushFault: Error, Sendable, Equatable {
    case badTopic, badExpiration, badCollapseID, badPriority, badChannel
    case payloadEmpty
    case payloadTooLarge(max: Int)
    /// Location and Live Activity pushes need token authentication.
    case needsTokenCredential

    /// The fault in words.
    public var text: String {
        switch self {
        case .badTopic: "apns-topic must be 1 to 255 letters, digits, '.', '-' or '_'"
        case .badExpiration: "apns-expiration must not be negative"
        case .badCollapseID: "apns-collapse-id must be 1 to 64 printable ASCII bytes"
        case .badChannel: "apns-channel-id must be a channel id (base64) of at most 128 bytes"
        case .badPriority: "a background push must have priority 5 or 1"
        case .payloadEmpty: "the payload is empty"
        case .payloadTooLarge(let max): "the payload is larger than \(max) bytes"
        case .needsTokenCredential: "this push type needs a .p8 key, not a certificate"
        }
    }
}
