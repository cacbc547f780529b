// SPDX-License-Identifier: Apache-2.0
public import APNsProtocol

/// APNs' refusal of a request: the status and the `reason` of its error body.
public struct Rejection: Equatable, Sendable {
    public let status: Int
    public let reason: String

    /// Creates a rejection from both parts.
    public init(_ status: Int, _ reason: String) {
        self.status = status
        self.reason = reason
    }
}

/// Apple's checks of one request, without the provider token. Pure, so that each rule is a row in a test.
///
/// Sources: "Sending notification requests to APNs" and "Handling notification responses from APNs". A comment marks
/// each choice where Apple documents no reason, or where the simulator is stricter than Apple.
public struct RequestCheck: Sendable {
    private let topics: [[UInt8]]

    /// - Parameter topics: accepted bundle identifiers; empty accepts any.
    public init(topics: [String] = []) {
        self.topics = topics.map { Array($0.utf8) }
    }

    /// Checks all header fields except `authorization`. Returns nil if they are valid.
    public func head(_ head: RequestHead) -> Rejection? {
        if let rejection = target(head) { return rejection }
        if head.hasDuplicates { return Rejection(400, "DuplicateHeaders") }
        guard let topic = head[.topic], !topic.isEmpty else { return Rejection(400, "MissingTopic") }
        guard let type = Self.type(head) else { return Rejection(400, "InvalidPushType") }
        if let rejection = self.topic(topic, type) { return rejection }
        return priority(head[.priority], type) ?? expiration(head[.expiration]) ?? identifier(head[.identifier])
            ?? collapseID(head[.collapseID])
    }

    /// The push type of a request; nil for an unknown word.
    ///
    /// The header is "required for watchOS 6 and later; recommended for macOS, iOS, tvOS, and iPadOS" ("Sending
    /// notification requests to APNs", table of header fields). Clients from before iOS 13 omit it; APNs then derives
    /// the type from the topic, and a topic without suffix is an alert.
    static func type(_ head: RequestHead) -> PushType? {
        if let value = head[.pushType] { return PushType(value) }
        guard let topic = head[.topic] else { return .alert }
        return PushType.allCases.first { type in
            let suffix = type.topicSuffix
            let ending = UnsafeBufferPointer(start: suffix.utf8Start, count: suffix.utf8CodeUnitCount)
            return !ending.isEmpty && topic.count > ending.count && topic.suffix(ending.count).elementsEqual(ending)
        } ?? .alert
    }

    /// - Returns: whether an app with this bundle identifier exists.
    func isKnown(bundle: String) -> Bool { topics.isEmpty || topics.contains(Array(bundle.utf8)) }

    /// Checks a payload's size. `isObject`: the payload is one JSON object.
    public func payload(bytes: Int, isObject: Bool, type: PushType) -> Rejection? {
        if bytes == 0 { return Rejection(400, "PayloadEmpty") }
        if bytes > type.payloadMax { return Rejection(413, "PayloadTooLarge") }
        // Apple documents no reason for a body that is not a JSON dictionary.
        return isObject ? nil : Rejection(400, "PayloadEmpty")
    }

    private func target(_ head: RequestHead) -> Rejection? {
        guard let path = head[.path], let token = Self.token(path: path) else { return Rejection(404, "BadPath") }
        guard head[.method]?.elementsEqual("POST".utf8) == true else { return Rejection(405, "MethodNotAllowed") }
        if token.isEmpty { return Rejection(400, "MissingDeviceToken") }
        // Apple sets the length ("don't make assumptions about the length").
        guard Self.isHex(token), token.count.isMultiple(of: 2), token.count <= 400 else {
            return Rejection(400, "BadDeviceToken")
        }
        return nil
    }

    private static func isHex(_ digits: ArraySlice<UInt8>) -> Bool {
        digits.withUnsafeBufferPointer { digits in
            var isHex = true
            for digit in digits {
                // Setting bit 5 makes letters lower-case. It turns no other byte into one of a ... f.
                isHex = isHex && (digit &- 0x30 < 10 || (digit | 0x20) &- 0x61 < 6)
            }
            return isHex
        }
    }

    /// - Returns: true for a token of zeros only, which no device has. This check comes last, so that a sender can
    ///   probe all other checks with it.
    static func isNoDevice(_ token: ArraySlice<UInt8>) -> Bool {
        token.first == UInt8(ascii: "0") && token.allSatisfy { $0 == UInt8(ascii: "0") }
    }

    /// The part after `/3/device/`; nil for another path.
    static func token(path: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let prefix: StaticString = "/3/device/"
        guard path.count >= prefix.utf8CodeUnitCount,
            path.prefix(prefix.utf8CodeUnitCount).elementsEqual(
                UnsafeBufferPointer(start: prefix.utf8Start, count: prefix.utf8CodeUnitCount))
        else {
            // The token is missing, but the path is right.
            return path.elementsEqual("/3/device".utf8) ? [] : nil
        }
        return path.dropFirst(prefix.utf8CodeUnitCount)
    }

    private func topic(_ topic: ArraySlice<UInt8>, _ type: PushType) -> Rejection? {
        // The topic of device management is not a bundle id.
        guard type != .mdm else { return nil }
        let suffix = type.topicSuffix
        let ending = UnsafeBufferPointer(start: suffix.utf8Start, count: suffix.utf8CodeUnitCount)
        guard topic.count > ending.count, topic.suffix(ending.count).elementsEqual(ending) else {
            return Rejection(400, "BadTopic")
        }
        let bundle = topic.dropLast(ending.count)
        let isKnown = topics.isEmpty || topics.contains { $0.count == bundle.count && bundle.elementsEqual($0) }
        if isKnown { return nil }
        // A known bundle with the suffix of another type is a mistake in the request, not in the account.
        let isMixed = topics.contains { bundle.starts(with: $0) && bundle.dropFirst($0.count).first == 0x2E }
        return Rejection(400, isMixed ? "BadTopic" : "TopicDisallowed")
    }

    private func priority(_ value: ArraySlice<UInt8>?, _ type: PushType) -> Rejection? {
        // An absent header means 10.
        let isImmediate = value?.elementsEqual("10".utf8) ?? true
        let isKnown = isImmediate || value?.elementsEqual("5".utf8) == true || value?.elementsEqual("1".utf8) == true
        // "Specifying 10 for a background notification is an error."
        return isKnown && !(isImmediate && type == .background) ? nil : Rejection(400, "BadPriority")
    }

    private func expiration(_ value: ArraySlice<UInt8>?) -> Rejection? {
        guard let value else { return nil }
        let isNumber = !value.isEmpty && value.count <= 18 && value.allSatisfy { (0x30...0x39).contains($0) }
        return isNumber ? nil : Rejection(400, "BadExpirationDate")
    }

    /// A UUID, 8-4-4-4-12. Apple documents lower-case digits, but Foundation's `uuidString` gives upper-case ones.
    private func identifier(_ value: ArraySlice<UInt8>?) -> Rejection? {
        guard let value else { return nil }
        var position = 0
        for byte in value {
            switch position {
            case 8, 13, 18, 23:
                guard byte == 0x2D else { return Rejection(400, "BadMessageId") }
            default:
                // Setting bit 5 makes letters lower-case. It turns no other byte into one of a ... f.
                guard (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte | 0x20) else {
                    return Rejection(400, "BadMessageId")
                }
            }
            position += 1
        }
        return position == 36 ? nil : Rejection(400, "BadMessageId")
    }

    private func collapseID(_ value: ArraySlice<UInt8>?) -> Rejection? {
        guard let value else { return nil }
        return (1...64).contains(value.count) ? nil : Rejection(400, "BadCollapseId")
    }
}

extension PushType {
    /// The push type of a header value; nil for an unknown value.
    fileprivate init?(_ value: ArraySlice<UInt8>) {
        // The two most frequent types first.
        if value.elementsEqual("alert".utf8) {
            self = .alert
        } else if value.elementsEqual("background".utf8) {
            self = .background
        } else {
            self.init(rawValue: String(decoding: value, as: UTF8.self))
        }
    }
}
