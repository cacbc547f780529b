// SPDX-License-Identifier: Apache-2.0
/// One parsed and checked record of `im.events` or `im.user-state` (contract section 2).
///
/// Times are Unix milliseconds UTC. All values meet the contract's limits: identifiers and lists are within their
/// lengths, texts are cut at a grapheme boundary.
public struct Event: Sendable {
    /// The tenant, ≤ 64 bytes.
    public var app: String
    /// The producer's unique id of this record, ≤ 64 bytes.
    public var id: String
    /// When the backend wrote the event. A scheduled message has the time at which it is decided: reads and reports before that time
    /// do not include it.
    public var sentMs: Int64
    public var body: Body

    public enum Body: Sendable {
        case message(SharedMessage)
        // Indirect too, so that passing on a message is one retain without a check of the case.
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

extension Event {
    /// The time that a scheduled message waits for; nil for any other event.
    public var sendAtMs: Int64? {
        if case .message(let message) = body { message.read { $0.push.sendAtMs } } else { nil }
    }
}

/// A message by reference, because a copy of its many parts would cost a dozen retains.
public final class SharedMessage: Sendable {
    public let value: Message

    public init(_ message: consuming Message) {
        value = message
    }

    /// Gives access to the message during `body`. `value` would copy it part by part, and so would this function if it
    /// were inlined.
    @inline(never)
    public func read<Result>(_ body: (borrowing Message) -> Result) -> Result { body(value) }
}

/// The conversation of a message.
public struct Conversation: Sendable, Equatable {
    public var id: String
    public var type: Kind
    /// Its display name, ≤ 100 characters; for communication notifications.
    public var name: String?

    public enum Kind: String, Sendable, CaseIterable {
        case p2p, group, ultra, system, custom

        /// Whether Redis has the members, instead of the event.
        public var hasMembers: Bool { self == .group || self == .ultra }
    }

    public init(id: String, type: Kind, name: String? = nil) {
        self.id = id
        self.type = type
        self.name = name
    }
}
