// SPDX-License-Identifier: Apache-2.0
public import APNsProtocol
public import EventLoop
public import HTTP2

/// One rule of a scenario: conditions and action.
public struct ScenarioRule: Sendable, Equatable {
    /// Conditions. All given conditions must hold.
    public struct Match: Sendable, Equatable {
        public var tokenPrefix: [UInt8] = []
        public var topic: [UInt8]?
        public var pushType: PushType?
        public var share: Double?
        public var connection: Int?
        public var every = 1
        public var skip = 0
        public var count = Int.max
        public var afterMs: Int64 = 0
        public var untilMs = Int64.max

        /// Creates conditions that match everything.
        public init() {}

        func holds(_ subject: Scenario.Subject) -> Bool {
            holds(connection: subject.connection, atMs: subject.atMs)
                && (pushType.map { $0 == subject.pushType } ?? true)
                && (tokenPrefix.isEmpty || subject.token.starts(with: tokenPrefix))
                && (topic.map { subject.topic.elementsEqual($0) } ?? true)
        }

        func holds(connection number: Int, atMs: Int64) -> Bool {
            atMs >= afterMs && atMs < untilMs && (connection ?? number) == number
        }

        /// Counts one match in `seen`. Returns true if it is one of `every` and between `skip` and `skip + count`.
        func take(_ seen: inout Int) -> Bool {
            seen += 1
            guard seen.isMultiple(of: every) else { return false }
            let place = seen / every - 1
            return place >= skip && place - skip < count
        }
    }

    public var match: Match
    public var action: ScenarioAction
    private var seen = 0

    /// Creates a rule. Without conditions it applies to every request.
    public init(_ match: Match = Match(), _ action: ScenarioAction) {
        self.match = match
        self.action = action
    }

    mutating func take() -> Bool { match.take(&seen) }
}

/// The action for a request.
public enum ScenarioAction: Sendable, Equatable {
    /// An ordinary answer, possibly delayed.
    case answer(ScenarioAnswer)
    /// RST_STREAM with this code. `refusedStream` means that the request was not processed.
    case reset(HTTP2ErrorCode)
    /// GOAWAY. Streams above its last id are dropped. `isTwice`: a GOAWAY with 2^31-1 is sent first (RFC 9113, 6.8).
    case goAway(last: GoAwayLast, code: HTTP2ErrorCode, reason: String?, isTwice: Bool = false)
    /// The connection is closed with close_notify only.
    case close
    /// The connection ends as if the host crashed.
    case breakOff(Link.BreakOff)
    /// This stream never gets an answer.
    case freezeStream
    /// The connection stops reading and writing.
    case freezeConnection
    /// The connection's output is slowed down from now on. The request itself is accepted.
    case drip(bytes: Int, everyMs: Int64)
    /// Sends `count` frames at once. The request itself is accepted.
    case flood(FloodFrame, count: Int)
    /// Raw bytes between the frames. The request itself is accepted.
    case bytes([UInt8])

    /// The frames of a flood.
    public enum FloodFrame: String, Sendable {
        case settings, ping
    }

    /// The last stream id of a GOAWAY.
    public enum GoAwayLast: String, Sendable {
        case none, before, this
    }

    /// The name in ledger and counters; nil for an answer.
    var faultName: String? {
        switch self {
        case .answer: nil
        case .reset(.refusedStream): "refuse_stream"
        case .reset: "reset"
        case .goAway: "goaway"
        case .close: "close"
        case .breakOff: "break"
        case .freezeStream, .freezeConnection: "freeze"
        case .drip: "drip"
        case .flood: "flood"
        case .bytes: "bytes"
        }
    }
}

/// The answer of a scenario.
public struct ScenarioAnswer: Sendable, Equatable {
    public var status = 200
    public var reason: String?
    /// The timestamp of a 410, Unix ms.
    public var timestampMs: Int64?
    public var retryAfterSeconds: Int?
    /// Whether the header names the second in which the wait ends.
    public var retryAfterIsDate = false
    public var delayMs: Int64 = 0
    public var body = Body.json
    /// Largest DATA frame of the body; nil for no limit.
    public var splitBytes: Int?

    /// The body of the answer.
    public enum Body: Sendable, Equatable {
        /// Apple's JSON; empty for a 200.
        case json
        /// Apple's JSON with a member `pad`, up to the given number of bytes.
        case padded(Int)
        /// These bytes. If empty, the answer ends with its headers.
        case raw([UInt8])
    }

    /// An acceptance as Apple sends it, with headers only.
    var isPlain: Bool { status == 200 && retryAfterSeconds == nil && body == .json }

    /// Creates an immediate 200.
    public init() {}

    /// Creates an immediate rejection.
    public init(_ status: Int, _ reason: String, timestampMs: Int64? = nil) {
        self.status = status
        self.reason = reason
        self.timestampMs = timestampMs
    }
}
