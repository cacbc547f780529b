// SPDX-License-Identifier: Apache-2.0
/// The common part of pushes with one topic, type and priority: created and checked once, referenced by all of them.
public final class PushTopic: Sendable {
    /// `apns-topic` as sent, with suffix (`PushType.topicSuffix`).
    public let topic: String
    public let pushType: PushType
    public let priority: PushPriority

    /// Header values as sent.
    let topicBytes: [UInt8]
    let typeBytes: [UInt8]
    let priorityBytes: [UInt8]

    /// - Throws: `PushFault.badTopic` for invalid bytes, `.badPriority` for an urgent background push.
    public init(_ topic: String, pushType: PushType, priority: PushPriority = .immediate) throws(PushFault) {
        topicBytes = Array(topic.utf8)
        guard !topicBytes.isEmpty, topicBytes.count <= 255, topicBytes.allSatisfy(Self.isTopicByte) else {
            throw .badTopic
        }
        // "Specify 5 … for background; 10 is an error" (Apple, Sending notification requests to APNs).
        if pushType == .background, priority == .immediate { throw .badPriority }
        self.topic = topic
        self.pushType = pushType
        self.priority = priority
        typeBytes = Array(pushType.rawValue.utf8)
        priorityBytes = Array(String(priority.rawValue).utf8)
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
