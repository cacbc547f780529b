import APNs
import EventLoop
import Kafka
import Redis
import Telemetry

// Stand-ins until the edges are merged.
struct LogLimiter {
    struct Line { var suppressed: Int }
    func admit(_ text: StaticString, _ code: String, nowNanos: UInt64) -> Line? { Line(suppressed: 0) }
}
struct SmallRandom {
    init(seed: UInt64) {}
}
struct Backoff {
    var baseNanos: UInt64
    var capNanos: UInt64
    func delayNanos(failures: Int, random: inout SmallRandom) -> UInt64 { baseNanos }
}
extension RedisClient { var serverGeneration: UInt32 { 0 } }
extension RedisFault { var refusesManySlots: Bool { false } }
struct PushTicket: Equatable {}
extension APNsClient {
    func renew(_ ticket: PushTicket, with push: consuming Push) {}
    func withdraw(_ ticket: PushTicket) -> Bool { false }
    func withdrawUnsent(where isWanted: (UInt64) -> Bool) -> [(tag: UInt64, mayHaveArrived: Bool)] { [] }
}
