// SPDX-License-Identifier: Apache-2.0
public import Digits

/// The part of an app's configuration that decisions use (contract section 8).
public struct AppPolicy: Sendable {
    public var id: String
    /// The bundle id for pushes. A token bound to another topic keeps its own. The first entry if there is a list.
    public var topic: String
    /// The bundle ids that tokens may be bound to; nil allows any, if the configuration gives no list.
    public var allowedTopics: [String]?
    public var profile = PayloadProfile.nim
    public var strategy = Strategy.connectionElseAPNs
    /// The last link of the mute chain. An absent entry allows everything.
    public var defaultLevels = TypeLevels()
    public var dndMode = DNDMode.independent
    public var forceOverridesDND = false
    public var clearOnRead = false
    /// The largest number that is sent; 0 for no limit.
    public var badgeCap: Int64 = 0
    public var badge = BadgeCounter.server
    /// The title of an alert to which nothing gives one.
    public var title = AlertTitle.absent
    /// The text before bodies, where a message wants it (`push.prefix`).
    public var prefix = PrefixFormat.standard
    /// The ids that `push.template` may name, of templates with words of their own.
    public var templateIDs: Set<UTF8Key> = []
    /// The other ids: of templates that show nothing but these arguments.
    public var argumentTemplates: [UTF8Key: Set<UTF8Key>] = [:]
    /// Alerts carry `im`, for communication notifications.
    public var communication = false
    public var defaultLanguage = "zh-Hans"
    public var defaultZone = "Asia/Shanghai"

    public enum DNDMode: String, Sendable {
        /// Mute level and quiet window are two independent vetoes (NIM).
        case independent
        /// An active window decides alone (RongCloud).
        case chain
    }

    /// Who counts the number on the icon. The ledger continues in each case.
    public enum BadgeCounter: String, Sendable {
        case server
        /// The app's client or extension (WPS): no payload has `aps.badge`.
        case client = "none"
        /// The sender of each message (Getui): an integer in `push.aps.badge` is sent as given.
        case sender
    }

    /// The title of an alert to which neither the message nor its template gives one.
    public enum AlertTitle: String, Sendable {
        case absent = "none"
        /// The sender's name.
        case nick
        /// The conversation's name (`conv.name`), else the sender's.
        case conversation
    }

    public init(id: String, topic: String) {
        self.id = id
        self.topic = topic
    }

    /// The longest bundle id in bytes, because it becomes a header of every push.
    public static var topicBytesMax: Int { 255 }

    /// - Returns: whether a token may be bound to the topic.
    public func allows(topic: String) -> Bool {
        guard let allowedTopics else { return true }
        return allowedTopics.contains { $0.isSame(as: topic) }
    }

    /// The bundle id that a bind's topic names: without the suffix of the token's own type, unless the app has that very topic.
    public func bareTopic(_ topic: String, of type: TokenRecord.Kind) -> String {
        guard let suffix = type.topicSuffix, topic.utf8.count > suffix.utf8.count, topic.hasSuffix(suffix) else {
            return topic
        }
        let topics = allowedTopics ?? [self.topic]
        return topics.containsSame(topic) ? topic : String(topic.dropLast(suffix.count))
    }

    /// The suffix of Apple's that a topic ends in; nil: none. A bundle id has none, so the worker would add a second one.
    public static func suffix(of topic: String) -> String? {
        [
            ".voip", ".push-type.liveactivity", ".voip-ptt", ".complication", ".pushkit.fileprovider",
            ".location-query", ".push-type.widgets", ".push-type.controls",
        ].first { topic.hasSuffix($0) }
    }

    /// - Returns: whether a text is a valid bundle id, and so a valid header: letters, digits, dots, hyphens,
    ///   underscores.
    public static func isTopic(_ text: String) -> Bool {
        text.withUTF8Bytes { bytes in
            !bytes.isEmpty && bytes.count <= topicBytesMax
                && bytes.allSatisfy { byte in
                    switch byte {
                    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                        true
                    default: false
                    }
                }
        }
    }
}

/// Gives the offset of a time zone from a table, never from a clock.
public protocol ZoneTable {
    /// Seconds east of UTC in `zone` at `ms`; nil for an unknown zone.
    func offset(of zone: String, at ms: Int64) -> Int?
}
