// SPDX-License-Identifier: Apache-2.0
import Telemetry

/// The log lines of a client about its connection; an unstable one repeats none of them too often.
struct ConnectionLog {
    private enum Line: Hashable {
        case ready
        case away(RedisFault.Code)
        case mayEvict
    }

    private let log: Log
    private var lines = LogLimiter<Line>()

    init(_ log: Log) { self.log = log }

    mutating func ready(_ endpoint: RedisEndpoint, _ facts: RedisServerFacts, nowNanos: UInt64) {
        let place = LogValue.string(endpoint.description)
        if let suppressed = lines.admit(.ready, nowNanos: nowNanos) {
            log.info(
                "Redis is ready",
                [
                    "redis": place, "version": .string(facts.version ?? "unknown"),
                    "role": .string(facts.roleName), "suppressed": .int(Int(clamping: suppressed)),
                ])
        }
        guard let policy = facts.evictionPolicy, policy != RedisServerFacts.safePolicy,
            let suppressed = lines.admit(.mayEvict, nowNanos: nowNanos)
        else { return }
        log.warning(
            "Redis may evict state: set maxmemory-policy noeviction",
            ["redis": place, "policy": .string(policy), "suppressed": .int(Int(clamping: suppressed))])
    }

    mutating func lost(_ endpoint: RedisEndpoint, _ fault: RedisFault, waitNanos: UInt64, nowNanos: UInt64) {
        guard let suppressed = lines.admit(.away(fault.code), nowNanos: nowNanos) else { return }
        log.warning(
            "lost Redis, reconnecting",
            [
                "redis": .string(endpoint.description), "code": .string(fault.code.name),
                "why": .string(fault.publicText), "wait_ms": .int(Int(waitNanos / 1_000_000)),
                "suppressed": .int(Int(clamping: suppressed)),
            ])
    }
}
