public import HTTP2

/// One rule of a scenario: when, and what then.
public struct ScenarioRule: Sendable, Equatable {
    /// Conditions; all that are given must hold.
    public struct Match: Sendable, Equatable {
        public var tokenPrefix: [UInt8] = []
        public var topic: [UInt8]?
        public var pushType: PushType?
        public var share: Double?
        public var skip = 0
        public var count = Int.max
        public var afterMs: Int64 = 0
        public var untilMs = Int64.max

        /// Matches everything.
        public init() {}

        func holds(_ subject: Scenario.Subject) -> Bool {
            subject.atMs >= afterMs && subject.atMs < untilMs
                && (pushType.map { $0 == subject.pushType } ?? true)
                && (tokenPrefix.isEmpty || subject.token.starts(with: tokenPrefix))
                && (topic.map { subject.topic.elementsEqual($0) } ?? true)
        }
    }

    public var match: Match
    public var action: ScenarioAction
    private var seen = 0

    /// A rule; without conditions it is for every request.
    public init(_ match: Match = Match(), _ action: ScenarioAction) {
        self.match = match
        self.action = action
    }

    /// Counts one match; true where it falls between `skip` and `skip + count`.
    mutating func take() -> Bool {
        let place = seen
        seen += 1
        return place >= match.skip && place - match.skip < match.count
    }
}

/// What a rule does with a request.
public enum ScenarioAction: Sendable, Equatable {
    /// An ordinary answer, perhaps late.
    case answer(ScenarioAnswer)
    /// RST_STREAM with this code; `refusedStream` says that nothing was done.
    case reset(HTTP2ErrorCode)
    /// GOAWAY; the streams above its last are dropped.
    case goAway(last: GoAwayLast, code: HTTP2ErrorCode, reason: String?)
    /// The connection is closed without a word.
    case close
    /// This stream is never answered.
    case freezeStream
    /// The connection reads and writes nothing any more.
    case freezeConnection
    /// The connection's output trickles from here on; the request itself is accepted.
    case drip(bytes: Int, everyMs: Int64)

    /// Which stream a GOAWAY names.
    public enum GoAwayLast: String, Sendable {
        case none, before, this
    }

    /// The word for ledger and counters; nil for an answer.
    var faultName: String? {
        switch self {
        case .answer: nil
        case .reset(.refusedStream): "refuse_stream"
        case .reset: "reset"
        case .goAway: "goaway"
        case .close: "close"
        case .freezeStream, .freezeConnection: "freeze"
        case .drip: "drip"
        }
    }
}

/// An answer as a scenario gives it.
public struct ScenarioAnswer: Sendable, Equatable {
    public var status = 200
    public var reason: String?
    /// 410's "since when", Unix ms.
    public var timestampMs: Int64?
    public var retryAfterSeconds: Int?
    public var delayMs: Int64 = 0

    /// 200 at once.
    public init() {}

    /// A rejection at once.
    public init(_ status: Int, _ reason: String, timestampMs: Int64? = nil) {
        self.status = status
        self.reason = reason
        self.timestampMs = timestampMs
    }
}
