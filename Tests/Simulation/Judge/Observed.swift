// SPDX-License-Identifier: Apache-2.0
/// What came out of the worker's interfaces, as an observer of the topics and of APNs sees it.
struct Observed {
    /// A record of `push.results`.
    struct Outcome {
        var atNanos: UInt64
        var eventID: String
        var uid: String
        /// Empty without device.
        var device: String
        var verdict: String
        var reason: String
        var pid: String
        var badge: Int64?
        /// Of a push that carries a badge alone: its event is the read or revoke that lowered the number.
        var isOfBadge = false
        var app = ""
        /// Nil: not in the record.
        var attempts: Int64?
        var latencyMs: Int64?
        var credential: String?
        var status: Int64?
        var apnsID: String?
        var messageID: String?
        /// Whether the record is about a digest.
        var isDigest: Bool { eventID.hasPrefix("digest-") }

        var isFinal: Bool { verdict != "parked" && !isOfBadge && !isDigest }
        /// Without the time.
        var text: String { "\(device.isEmpty ? "no device" : device): \(verdict) \(reason) \(pid)" }
    }

    /// A request to APNs and its answer.
    struct Push {
        var atNanos: UInt64
        var token: String
        var pid: String
        var status: Int?
        /// APNs sent the answer.
        var isAnswered: Bool
        var app: String
        /// Nil: a digest or a badge.
        var messageID: String?
        var type = "alert"
        var priority: Int64?
        var expiration: Int64?
        var badge: Int64?
        var title: String?
        /// Nil: no alert.
        var body: String?
        var isMutable = false
        /// The names in `aps`, in order.
        var names: [String] = []
        var reason = ""
        var topic = ""
        var collapseID = ""
        var bytes = 0
        /// The broadcast channel in place of a token.
        var channel: String?
        /// How long APNs kept it without an answer.
        var delayMs: Int64 = 0
        /// Nil: it is not known (in histories made by hand).
        var payload: JudgeJSON?
        /// When APNs had the request.
        var receivedNanos: UInt64 { atNanos - min(atNanos, UInt64(delayMs) * 1_000_000) }
    }

    /// A target of a record of `im.deliveries`.
    struct Delivery {
        var atNanos: UInt64
        var app: String
        var eventID: String
        var uid: String
        var device: String
        var alerts: Bool
        var isPushed: Bool
        var wantsAck: Bool
        var ackByMs: Int64?
        var gateway = ""
        var connection: Int64 = -1
        var pid: String?
        /// The event in the record.
        var event: JudgeJSON?
    }

    /// A record of `push.sms`.
    struct SMS {
        var atNanos: UInt64
        var app: String
        var eventID: String
        var uid: String
        var reason: String
        var phone: String?
        var body: String?
    }

    /// A record of `push.feedback`.
    struct Feedback {
        var atNanos: UInt64
        var app: String
        var uid: String
        var device: String
        var token: String
        var cause: String
        var boundMs: Int64
    }

    /// A record of `push.state-results`.
    struct StateResult {
        var atNanos: UInt64
        var outcome: String
        var reason = ""
        /// Nil: not known (in histories made by hand).
        var kind: String?
        var uid: String?
    }

    /// A record by which the work of an event, or a part of it, was handed on.
    struct HandOn {
        var atNanos: UInt64
        var eventID: String
        /// `app` and `uid`, or `app` and the conversation.
        var key: String
        /// The members that the record is about; nil: the whole event.
        var uids: [String]?
    }

    var outcomes: [Outcome] = []
    var pushes: [Push] = []
    var deliveries: [Delivery] = []
    /// The first result of each user-state record, by its event id.
    var results: [String: StateResult] = [:]
    var handedOn: [HandOn] = []
    var sms: [SMS] = []
    var feedback: [Feedback] = []
    /// The statistics in Redis at the end, without badges alone: by app and verdict. Nil: not read.
    var counted: [String: Int64]?
    /// More of them: by app, list, name and number.
    var numbers: [String: Int64] = [:]
    var deadLetters: [String] = []
    /// Dead letters of records that an episode wrote for this end.
    var letters: [(value: String, error: String)] = []

    /// The records and pushes of all other apps.
    func without(app: String) -> Observed {
        var observed = self
        observed.outcomes.removeAll { $0.app == app }
        observed.pushes.removeAll { $0.app == app }
        observed.deliveries.removeAll { $0.app == app }
        observed.sms.removeAll { $0.app == app }
        observed.feedback.removeAll { $0.app == app }
        return observed
    }

    /// When a user-state record was applied; `.max`: not yet.
    func applied(_ state: StateSent) -> UInt64 { results[state.eventID]?.atNanos ?? .max }
}

/// What a judge found.
public struct Violation: Equatable, Sendable {
    /// The rule, such as `one final outcome`.
    public let rule: String
    public let text: String
    /// The message or event that it is about; empty for none.
    public let message: String
}
