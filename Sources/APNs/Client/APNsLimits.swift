public import EventLoop

/// The numbers that bound a client; every queue, wait and retry has one here.
public struct APNsLimits: Sendable, Equatable {
    /// Pushes a client holds at once: waiting, delayed and in flight. Full means back-pressure.
    public var pushesMax = 20_000
    /// How those that wait share what leaves.
    public var lanes = LaneShares()
    /// Streams in flight over all connections; the most that the limiter may find.
    public var inFlightMax = 2_000
    /// In flight at first; doubled each round trip until the first sign of trouble. At or above `inFlightMax` the limit is
    /// fixed and nothing is tried.
    public var inFlightStart = 20
    /// Streams per connection, below whatever the peer allows.
    public var streamsPerConnectionMax = 1_000
    /// Connections kept open once started.
    public var connectionsMin = 1
    public var connectionsMax = 4
    /// Connections for suspect tokens, opened when there are such pushes; 0: they travel with the others.
    public var suspectConnectionsMax = 1
    /// Streams on each of them.
    public var suspectStreamsMax = 200
    /// Suspects that wait for their own connections; of those beyond, one goes with each `ordinaryPerSuspect` others, and
    /// so never enough of them to shrink the main connections. All suspects that wait are at most a quarter of `pushesMax`.
    public var suspectsWaitingMax = 32
    public var ordinaryPerSuspect = 8
    /// How long pushes must wait for want of streams before another connection is opened.
    public var growAfterNanos: UInt64 = 200_000_000
    /// A connection above the minimum that was idle for so long is closed.
    public var idleMaxNanos: UInt64 = 300_000_000_000
    /// Age at which a connection is replaced; up to a tenth less is drawn, so that many do not go together.
    public var ageMaxNanos: UInt64 = 12 * 3_600_000_000_000
    public var connectTimeoutNanos: UInt64 = 10_000_000_000
    /// TLS is up but no SETTINGS came.
    public var settingsTimeoutNanos: UInt64 = 5_000_000_000
    /// Least time between two connects while all goes well; failures add a jittered, rising wait.
    public var connectSpacingNanos: UInt64 = 250_000_000
    /// The same where it replaces what APNs took leave of with GOAWAY: so many were in order a moment ago.
    public var refillSpacingNanos: UInt64 = 8_000_000
    /// Connects that may follow each other at these paces; after them one per `connectRefillNanos`.
    public var connectBurst = 8
    public var connectRefillNanos: UInt64 = 1_000_000_000
    public var connectBackoff = Backoff(baseNanos: 500_000_000, capNanos: 60_000_000_000)
    /// While pushes wait: longest pause before an endpoint that refused a connect or said "unavailable" is tried again. A
    /// `Retry-After` of the endpoint may be longer.
    public var waitingRetryMaxNanos: UInt64 = 5_000_000_000
    /// Wait for one answer; then the stream is reset and the push's fate is unknown.
    public var answerNanos: UInt64 = 5_000_000_000
    /// Resends of a push whose fate is unknown (same apns-id).
    public var unknownTries = 2
    /// Silence on a connection with work outstanding before it is asked by PING.
    public var pingAfterNanos: UInt64 = 1_000_000_000
    /// Wait for the PING's answer; then the connection is dead.
    public var pingTimeoutNanos: UInt64 = 1_250_000_000
    /// A connection that answers PINGs but no requests for so long, or gives back no window, is replaced.
    public var stallNanos: UInt64 = 1_500_000_000
    /// "Unavailable" answers in a row after which nothing but a probe is sent for a while.
    public var breakerAnswers = 20
    public var breakerBackoff = Backoff(baseNanos: 1_000_000_000, capNanos: 5_000_000_000)
    /// Silence on an idle connection before it is asked by PING.
    public var idlePingNanos: UInt64 = 60_000_000_000
    /// Delay after 429, 500 and 503: soon at first, later the quarter of an hour that Apple asks for (after 503 at most
    /// `waitingRetryMaxNanos`, since the breaker keeps a crowd away).
    public var retryBackoff = Backoff(baseNanos: 500_000_000, capNanos: 900_000_000_000)
    /// Longest `Retry-After` believed.
    public var retryAfterMaxNanos: UInt64 = 3_600_000_000_000
    /// Delays longer than this end as `deferred`, for the caller to park; `.max`: everything waits here.
    public var holdNanos: UInt64 = .max
    /// Age of a push's `send` or last check from which on its owner is asked again before it leaves
    /// (`APNsClientDelegate`); `.max`: never.
    public var checkAfterNanos: UInt64 = .max
    /// Between two probes of a paused credential.
    public var credentialProbeNanos: UInt64 = 60_000_000_000

    public init() {}

    /// Relations that must hold, in words; empty when all do.
    public var problems: [String] {
        var found: [String] = []
        if pushesMax < 1 || inFlightMax < 1 || streamsPerConnectionMax < 1 {
            found.append("pushesMax, inFlightMax and streamsPerConnectionMax must be at least 1")
        }
        if pushesMax < inFlightMax { found.append("pushesMax must not be below inFlightMax") }
        if pushesMax > Int(Int32.max) { found.append("pushesMax must fit 31 bits") }
        if connectionsMin < 1 || connectionsMax < connectionsMin {
            found.append("connectionsMin must be at least 1 and connectionsMax not below it")
        }
        if inFlightStart < 1 || connectBurst < 1 || breakerAnswers < 1 || stallNanos == 0 {
            found.append("inFlightStart, connectBurst, breakerAnswers and stallNanos must be at least 1")
        }
        if suspectConnectionsMax < 0 || suspectStreamsMax < 1 {
            found.append("suspectConnectionsMax must not be negative and suspectStreamsMax at least 1")
        }
        if suspectsWaitingMax < 0 || ordinaryPerSuspect < 1 {
            found.append("suspectsWaitingMax must not be negative and ordinaryPerSuspect at least 1")
        }
        if answerNanos == 0 || connectTimeoutNanos == 0 || pingTimeoutNanos == 0 {
            found.append("answer, connect and PING timeouts must not be 0")
        }
        if waitingRetryMaxNanos == 0 { found.append("waitingRetryMaxNanos must not be 0") }
        // Less would be over before the answer to a check is acted on, and the push would never leave.
        if checkAfterNanos < 1_000_000 { found.append("checkAfterNanos must be at least a millisecond") }
        if unknownTries < 0 { found.append("unknownTries must not be negative") }
        return found
    }
}
