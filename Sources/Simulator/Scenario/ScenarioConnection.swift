/// On what terms a simulator's connections are kept; nil leaves what `SimulatorConfiguration` says.
public struct ScenarioConnection: Sendable, Equatable {
    /// Added between what the client sends and all that comes back for it, window updates included; in milliseconds.
    public var roundTripMs: Int64 = 0
    /// Window for the bodies of a connection together.
    public var windowBytes: Int32?
    /// Whether that window is given back; false: so many bytes and no more.
    public var returnsWindow = true
    /// Streams allowed, and those before the first accepted token.
    public var streams: UInt32?
    public var streamsAtStart: UInt32?
    /// Whether a rejection shrinks the limit to one stream until the next acceptance.
    public var shrinksOnRejection: Bool?
    /// HPACK table offered.
    public var headerTableBytes: UInt32 = 4096
    /// When a new provider token comes too soon.
    public var tokenThrottle: TokenThrottle?

    /// Everything as the configuration says.
    public init() {}

    /// The rule behind 429 TooManyProviderTokenUpdates. Apple gives none beyond "no more than once every 20 minutes", and
    /// users saw both of these.
    public struct TokenThrottle: Sendable, Equatable {
        public enum Scope: String, Sendable, CaseIterable {
            /// A connection changes its token sooner than `minMs` after the first use of the one before (pushy #931).
            case connection
            /// A team's key is seen with a token never seen before sooner than `minMs` after the last such (radar 34800585).
            case key
        }

        public var scope: Scope
        public var minMs: Int64
        /// The connection says nothing more after that answer (pushy #811).
        public var wedges: Bool

        /// All three parts.
        public init(_ scope: Scope, minMs: Int64, wedges: Bool = false) {
            self.scope = scope
            self.minMs = minMs
            self.wedges = wedges
        }
    }
}

/// What a connection meets as soon as TLS is up.
public struct ScenarioConnectRule: Sendable, Equatable {
    /// Conditions; `token`, `topic` and `push_type` cannot hold here.
    public var match: ScenarioRule.Match
    public var fault: Fault
    var seen = 0

    /// What happens.
    public enum Fault: Sendable, Equatable {
        /// Closed at once, with close_notify.
        case close
        /// Broken off at once, as by a dying host.
        case breakOff
        /// Not a byte: no SETTINGS, no answers.
        case mute
        /// GOAWAY in place of SETTINGS, and the end.
        case goAway(code: UInt32, reason: String?)
        /// These bytes in place of SETTINGS, and the end.
        case bytes([UInt8])

        /// The word for the counters.
        var name: String {
            switch self {
            case .close: "connect_close"
            case .breakOff: "connect_break"
            case .mute: "connect_mute"
            case .goAway: "connect_goaway"
            case .bytes: "connect_bytes"
            }
        }
    }

    /// A rule; without conditions it is for every connection.
    public init(_ match: ScenarioRule.Match = ScenarioRule.Match(), _ fault: Fault) {
        self.match = match
        self.fault = fault
    }
}
