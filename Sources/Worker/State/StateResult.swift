// SPDX-License-Identifier: Apache-2.0
public import JSON

/// A record of `push.state-results`: the result of one user-state record (contract section 1, `state_results`).
public struct StateResult: Sendable, Equatable {
    public var app: String
    public var eventID: String
    public var uid: String
    /// `UserState.Change.kind`.
    public var kind: String
    public var outcome: StateOutcome
    public var atMs: Int64

    public init(app: String, eventID: String, uid: String, kind: String, outcome: StateOutcome, atMs: Int64) {
        self.app = app
        self.eventID = eventID
        self.uid = uid
        self.kind = kind
        self.outcome = outcome
        self.atMs = atMs
    }

    public func write(to writer: inout JSONWriter) {
        writer.beginRecord(app: app, eventID: eventID)
        writer.member("uid", uid)
        writer.member("kind", kind)
        writer.member("outcome", outcome.word)
        if case .ignored(let why) = outcome, why != .stale { writer.member("reason", why.rawValue) }
        writer.member("at_ms", atMs)
        writer.endObject()
    }
}

extension StateOutcome {
    /// The contract's word.
    fileprivate var word: String {
        switch self {
        case .applied: "applied"
        case .repeated: "repeat"
        case .ignored(.stale): "stale"
        case .ignored, .refused: "ignored"
        }
    }
}
