// SPDX-License-Identifier: Apache-2.0
/// Properties of the simulator's connections. Nil keeps the value of `SimulatorConfiguration`.
public struct ScenarioConnection: Sendable, Equatable {
    /// Added delay between the client's bytes and everything sent back for them, window updates included; milliseconds.
    public var roundTripMs: Int64 = 0
    /// Flow-control window for all request bodies of a connection.
    public var windowBytes: Int32?
    /// Whether the window is replenished. If false, the client can send that many bytes in total.
    public var returnsWindow = true
    /// Stream limits: after and before the first accepted token.
    public var streams: UInt32?
    public var streamsAtStart: UInt32?
    /// Whether a rejection limits the connection to one stream until the next acceptance.
    public var shrinksOnRejection: Bool?
    /// The announced HPACK table size.
    public var headerTableBytes: UInt32 = 4096
    /// The rule for provider tokens that change too soon.
    public var tokenThrottle: TokenThrottle?

    /// Creates properties that change nothing.
    public init() {}

    /// The rule for 429 TooManyProviderTokenUpdates. Apple documents only "no more than once every 20 minutes"; users
    /// observed both scopes below.
    public struct TokenThrottle: Sendable, Equatable {
        public enum Scope: String, Sendable, CaseIterable {
            /// A connection changes its token earlier than `minMs` after the first use of the previous one (pushy
            /// #931).
            case connection
            /// A team's key is used with a new token earlier than `minMs` after the previous new one (radar 34800585).
            case key
        }

        public var scope: Scope
        public var minMs: Int64
        /// The connection is silent after that answer (pushy #811).
        public var wedges: Bool

        /// Creates a rule from all three parts.
        public init(_ scope: Scope, minMs: Int64, wedges: Bool = false) {
            self.scope = scope
            self.minMs = minMs
            self.wedges = wedges
        }
    }
}

/// The fate of a connection right after the TLS handshake.
public struct ScenarioConnectRule: Sendable, Equatable {
    /// Conditions. `token`, `topic` and `push_type` never match here.
    public var match: ScenarioRule.Match
    public var fault: Fault
    var seen = 0

    /// The fault.
    public enum Fault: Sendable, Equatable {
        /// Closed at once, with close_notify.
        case close
        /// Broken at once, as by a crashed host.
        case breakOff
        /// The simulator sends nothing: no SETTINGS, no answers.
        case mute
        /// GOAWAY in place of SETTINGS, then the connection is closed.
        case goAway(code: UInt32, reason: String?)
        /// These bytes in place of SETTINGS, then the connection is closed.
        case bytes([UInt8])

        /// The fault's name in the counters.
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

    /// Creates a rule. Without conditions it applies to every connection.
    public init(_ match: ScenarioRule.Match = ScenarioRule.Match(), _ fault: Fault) {
        self.match = match
        self.fault = fault
    }
}
