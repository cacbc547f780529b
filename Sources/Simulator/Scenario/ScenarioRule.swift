public import APNsProtocol
public import EventLoop
public import HTTP2

/// One rule of a scenario: when, and what then.
public struct ScenarioRule: Sendable, Equatable {
    /// Conditions; all that are given must hold.
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

        /// Matches everything.
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

        /// Counts one match in `seen`; true where it is one of `every` and falls between `skip` and `skip + count`.
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

    /// A rule; without conditions it is for every request.
    public init(_ match: Match = Match(), _ action: ScenarioAction) {
        self.match = match
        self.action = action
    }

    mutating func take() -> Bool { match.take(&seen) }
}

/// What a rule does with a request.
public enum ScenarioAction: Sendable, Equatable {
    /// An ordinary answer, perhaps late.
    case answer(ScenarioAnswer)
    /// RST_STREAM with this code; `refusedStream` says that nothing was done.
    case reset(HTTP2ErrorCode)
    /// GOAWAY; the streams above its last are dropped. `isTwice`: one that names 2^31-1 goes before it (RFC 9113, 6.8).
    case goAway(last: GoAwayLast, code: HTTP2ErrorCode, reason: String?, isTwice: Bool = false)
    /// The connection is closed with close_notify and no other word.
    case close
    /// It ends as with a dying host.
    case breakOff(Link.BreakOff)
    /// This stream is never answered.
    case freezeStream
    /// The connection reads and writes nothing any more.
    case freezeConnection
    /// The connection's output trickles from here on; the request itself is accepted.
    case drip(bytes: Int, everyMs: Int64)
    /// So many frames at once; the request itself is accepted.
    case flood(FloodFrame, count: Int)
    /// Raw bytes among the frames; the request itself is accepted.
    case bytes([UInt8])

    /// What a flood is made of.
    public enum FloodFrame: String, Sendable {
        case settings, ping
    }

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
        case .breakOff: "break"
        case .freezeStream, .freezeConnection: "freeze"
        case .drip: "drip"
        case .flood: "flood"
        case .bytes: "bytes"
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
    public var body = Body.json
    /// Largest DATA frame of the body; nil: as large as it goes.
    public var splitBytes: Int?

    /// What the body is.
    public enum Body: Sendable, Equatable {
        /// Apple's JSON, and nothing with a 200.
        case json
        /// Apple's JSON with a member `pad`, so many bytes in all.
        case padded(Int)
        /// These bytes; with none the answer ends with its headers.
        case raw([UInt8])
    }

    /// An acceptance as Apple sends it: nothing but headers.
    var isPlain: Bool { status == 200 && retryAfterSeconds == nil && body == .json }

    /// 200 at once.
    public init() {}

    /// A rejection at once.
    public init(_ status: Int, _ reason: String, timestampMs: Int64? = nil) {
        self.status = status
        self.reason = reason
        self.timestampMs = timestampMs
    }
}
