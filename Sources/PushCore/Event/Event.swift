/// One record of `im.events` or `im.user-state`, read and checked (contract section 2).
///
/// Times are Unix milliseconds UTC. What is here has passed every limit of the contract: names are within their bytes,
/// lists within their lengths, texts are cut on a grapheme border.
public struct Event: Sendable {
    /// The tenant, ≤ 64 bytes.
    public var app: String
    /// The producer's unique id of this record, ≤ 64 bytes.
    public var id: String
    public var sentMs: Int64
    public var body: Body

    public enum Body: Sendable {
        case message(SharedMessage)
        // Behind a pointer too, so that handing on a message is one retain, and no look at which of them it is.
        indirect case liveActivity(LiveActivity)
        indirect case userState(UserState)
    }

    public init(app: String, id: String, sentMs: Int64, body: Body) {
        self.app = app
        self.id = id
        self.sentMs = sentMs
        self.body = body
    }
}

/// A message that travels by reference: it has so many parts that each copy of it would cost a dozen retains.
public final class SharedMessage: Sendable {
    public let value: Message

    public init(_ message: consuming Message) {
        value = message
    }

    /// The message for the time of `body`, where `value` would be copied part by part; and so it would be here, were this
    /// made part of its callers.
    @inline(never)
    public func read<Result>(_ body: (borrowing Message) -> Result) -> Result { body(value) }
}

/// Where a message belongs.
public struct Conversation: Sendable, Equatable {
    public var id: String
    public var type: Kind
    /// What people call it, ≤ 100 characters; for communication notifications.
    public var name: String?

    public enum Kind: String, Sendable, CaseIterable {
        case p2p, group, ultra, system, custom

        /// Whether the members are read from Redis rather than given in the event.
        public var hasMembers: Bool { self == .group || self == .ultra }
    }

    public init(id: String, type: Kind, name: String? = nil) {
        self.id = id
        self.type = type
        self.name = name
    }
}
