/// Every number that bounds a Redis client.
public struct RedisLimits: Sendable, Equatable {
    /// From command to reply. A connection that misses it is closed: its replies could no longer be told apart.
    public var commandTimeoutNanos: UInt64 = 2_000_000_000
    /// For name, TCP, TLS and login together twice: once to connect, once to log in.
    public var connectTimeoutNanos: UInt64 = 2_000_000_000
    /// Commands waiting for a reply; the next one is refused with `.overloaded`.
    public var pipelineMax = 10_000
    /// Bytes waiting for the socket; beyond it commands are refused with `.overloaded`.
    public var outputBytesMax = 32 << 20
    /// Memory of one reply; a larger one is passed over, and its command fails with `.tooLarge`. A presence hash of the
    /// 10 000 fields that one may have needs some 4 MB of it.
    public var replyBytesMax = 8 << 20
    /// How long a replica is read from, before another connection may meet a master there.
    public var readOnlyNanos: UInt64 = 1_000_000_000
    /// Wait before the first reconnect, at least.
    public var backoffMinNanos: UInt64 = 50_000_000
    /// Wait before any reconnect, at most.
    public var backoffMaxNanos: UInt64 = 5_000_000_000

    public init() {}
}
