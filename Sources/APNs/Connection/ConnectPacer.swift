/// When the next connect may begin: spaced in good times, backed off with full jitter in bad ones.
///
/// Apple treats quick connects and disconnects as an attack, and a flaky network once made a client reconnect ten
/// thousand times within seconds; this is the one gate through which all connects of a client pass.
struct ConnectPacer: Equatable {
    private(set) var failures = 0
    private(set) var notBeforeNanos: UInt64 = 0
    private let spacingNanos: UInt64
    private let backoff: Backoff

    init(spacingNanos: UInt64, backoff: Backoff) {
        self.spacingNanos = spacingNanos
        self.backoff = backoff
    }

    func mayConnect(nowNanos: UInt64) -> Bool { nowNanos >= notBeforeNanos }

    /// A connect begins: the next keeps its distance, jittered so that shards do not march in step.
    mutating func began(nowNanos: UInt64, random: inout SmallRandom) {
        let gap = random.next(in: spacingNanos / 2...max(spacingNanos, spacingNanos / 2))
        notBeforeNanos = max(notBeforeNanos, nowNanos &+ gap)
    }

    /// A connection failed before it became ready.
    mutating func failed(nowNanos: UInt64, random: inout SmallRandom) {
        failures += 1
        let delay = backoff.delayNanos(failures: failures, random: &random)
        notBeforeNanos = max(notBeforeNanos, nowNanos &+ delay)
    }

    /// A connection carried an accepted push: the endpoint is in order.
    ///
    /// Not already at SETTINGS: an endpoint that greets and then hangs up must not be redialled at full pace.
    mutating func proved() { failures = 0 }
}
