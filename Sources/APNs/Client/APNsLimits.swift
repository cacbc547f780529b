// SPDX-License-Identifier: Apache-2.0
public import EventLoop

/// The bounds of a client. Every queue, wait and retry has one.
public struct APNsLimits: Sendable, Equatable {
    /// Maximum pushes held by a client: waiting, delayed and in flight. A full client causes back-pressure.
    public var pushesMax = 20_000
    /// How the lanes share the streams.
    public var lanes = LaneShares()
    /// Maximum streams in flight over all connections; the limiter's upper bound.
    public var inFlightMax = 2_000
    /// Initial streams in flight, doubled each round trip until the first sign of overload. At or above `inFlightMax`
    /// the limit is fixed and the limiter tries nothing.
    public var inFlightStart = 20
    /// Maximum streams per connection, below the peer's own limit.
    public var streamsPerConnectionMax = 1_000
    /// Connections kept open after the start.
    public var connectionsMin = 1
    public var connectionsMax = 4
    /// Connections for suspect tokens, opened when such pushes exist. 0: they use the main connections.
    public var suspectConnectionsMax = 1
    /// Streams on each of them.
    public var suspectStreamsMax = 200
    /// Maximum suspect pushes that wait for their own connections. Beyond it, one goes with each `ordinaryPerSuspect`
    /// others, which is too few to shrink the main connections. At most a quarter of `pushesMax` may be waiting suspect
    /// pushes.
    public var suspectsWaitingMax = 32
    public var ordinaryPerSuspect = 8
    /// How long pushes must wait for streams before another connection is opened.
    public var growAfterNanos: UInt64 = 200_000_000
    /// A connection above the minimum that was idle for this time is closed.
    public var idleMaxNanos: UInt64 = 300_000_000_000
    /// Age at which a connection is replaced; up to a tenth less at random, so that connections do not end together.
    public var ageMaxNanos: UInt64 = 12 * 3_600_000_000_000
    public var connectTimeoutNanos: UInt64 = 10_000_000_000
    /// Maximum time from the TLS handshake to the peer's SETTINGS.
    public var settingsTimeoutNanos: UInt64 = 5_000_000_000
    /// Minimum time between two connects in normal operation. Failures add a jittered, rising wait.
    public var connectSpacingNanos: UInt64 = 250_000_000
    /// The same for connections that replace those closed by GOAWAY, because that number worked a moment ago.
    public var refillSpacingNanos: UInt64 = 8_000_000
    /// Connects in a burst at these intervals; after that one per `connectRefillNanos`.
    public var connectBurst = 8
    public var connectRefillNanos: UInt64 = 1_000_000_000
    public var connectBackoff = Backoff(baseNanos: 500_000_000, capNanos: 60_000_000_000)
    /// While pushes wait: longest pause before an endpoint that refused a connect or was unavailable is tried again. A
    /// `Retry-After` of the endpoint may be longer.
    public var waitingRetryMaxNanos: UInt64 = 5_000_000_000
    /// Maximum wait for one answer. Then the stream is reset, and the push's result is unknown.
    public var answerNanos: UInt64 = 5_000_000_000
    /// Resends of a push with an unknown result (same apns-id).
    public var unknownTries = 2
    /// Silence on a connection with open requests before a PING.
    public var pingAfterNanos: UInt64 = 1_000_000_000
    /// Maximum wait for the PING's answer. Then the connection is dead.
    public var pingTimeoutNanos: UInt64 = 1_250_000_000
    /// A connection that answers PINGs but no requests for this time, or returns no window, is replaced.
    public var stallNanos: UInt64 = 1_500_000_000
    /// Number of consecutive "unavailable" answers after which only probes are sent for a while.
    public var breakerAnswers = 20
    public var breakerBackoff = Backoff(baseNanos: 1_000_000_000, capNanos: 5_000_000_000)
    /// Silence on an idle connection before a PING.
    public var idlePingNanos: UInt64 = 60_000_000_000
    /// Delay after 429, 500 and 503: short at first, later the quarter of an hour that Apple asks for (after 503 at
    /// most `waitingRetryMaxNanos`, because the breaker limits the number of retries).
    public var retryBackoff = Backoff(baseNanos: 500_000_000, capNanos: 900_000_000_000)
    /// Longest pause of a device after 429 TooManyRequests without a `Retry-After`.
    public var tokenRetryMaxNanos: UInt64 = 300_000_000_000
    /// Longest accepted `Retry-After`.
    public var retryAfterMaxNanos: UInt64 = 3_600_000_000_000
    /// Longer delays end as `deferred`, so that the caller can park the push; after a 429 all pushes that wait for the device do.
    /// `.max`: every push waits here.
    public var holdNanos: UInt64 = .max
    /// Age of a push's `send` or last check at which its owner is asked again before it is sent (`APNsClientDelegate`).
    /// `.max`: never.
    public var checkAfterNanos: UInt64 = .max
    /// Time between two probes of a paused credential.
    public var credentialProbeNanos: UInt64 = 60_000_000_000

    public init() {}

    /// Violated relations between the limits, in words; empty if all hold.
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
        // With a shorter time, a check would be outdated before its answer is handled, and the push would never be
        // sent.
        if checkAfterNanos < 1_000_000 { found.append("checkAfterNanos must be at least a millisecond") }
        if unknownTries < 0 { found.append("unknownTries must not be negative") }
        return found
    }
}
