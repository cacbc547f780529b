// SPDX-License-Identifier: Apache-2.0
public import PushCore

/// The decision and outcomes of one event for one user, for `carillon trace`: ids and codes, never a text or a token.
public struct TraceRecord: Sendable, Equatable {
    /// Unix ms: time of its first outcome.
    public var atMs: Int64
    /// The record's own `sent_ms`.
    public var sentMs: Int64
    public var kind: PairKind
    public var msgID: String
    public var eventID: String
    /// The results of the decision's steps in its last round.
    public var facts: DecisionFacts
    /// An earlier try (by this worker or another) had begun and not finished it.
    public var isResumed: Bool
    public var devices: [Device] = []

    /// One outcome, as in `push.results`.
    public struct Device: Sendable, Equatable {
        /// Nil for the user as a whole.
        public var device: String?
        public var verdict: Verdict
        /// A `Reason`, or APNs' own word.
        public var reason: String
        /// `pid`, which is also the `apns_id`; set if a push was made.
        public var pushID: PushID?
        /// APNs' HTTP status.
        public var status: Int?
        /// The badge in the push; nil for none.
        public var badge: Int64?
        public var attempts = 0
        /// From the original record's Kafka time to the outcome.
        public var latencyMs: Int64 = 0
        /// Unix ms.
        public var atMs: Int64

        public init(
            device: String? = nil, verdict: Verdict, reason: String, pushID: PushID? = nil, status: Int? = nil,
            badge: Int64? = nil, attempts: Int = 0, latencyMs: Int64 = 0, atMs: Int64
        ) {
            self.device = device
            self.verdict = verdict
            self.reason = reason
            self.pushID = pushID
            self.status = status
            self.badge = badge
            self.attempts = attempts
            self.latencyMs = latencyMs
            self.atMs = atMs
        }
    }

    public init(
        atMs: Int64, sentMs: Int64, kind: PairKind, msgID: String, eventID: String, facts: DecisionFacts,
        isResumed: Bool = false, devices: [Device] = []
    ) {
        self.atMs = atMs
        self.sentMs = sentMs
        self.kind = kind
        self.msgID = msgID
        self.eventID = eventID
        self.facts = facts
        self.isResumed = isResumed
        self.devices = devices
    }
}
