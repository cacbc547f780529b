// SPDX-License-Identifier: Apache-2.0
/// All bounds of a Redis client.
public struct RedisLimits: Sendable, Equatable {
    /// From command to reply. A connection that exceeds it is closed, because its replies could no longer be matched.
    public var commandTimeoutNanos: UInt64 = 2_000_000_000
    /// For name lookup, TCP, TLS and login; applies once to connecting and once to the login.
    public var connectTimeoutNanos: UInt64 = 2_000_000_000
    /// Maximum commands without a reply. Further ones are refused with `.overloaded`.
    public var pipelineMax = 10_000
    /// Maximum bytes waiting for the socket. Beyond it commands are refused with `.overloaded`.
    public var outputBytesMax = 32 << 20
    /// Memory of one reply. A larger one is skipped, and its command fails with `.tooLarge`. A page of a
    /// group's members needs much less.
    public var replyBytesMax = 8 << 20
    /// How long a replica is read from before another connection may reach a master.
    public var readOnlyNanos: UInt64 = 1_000_000_000
    /// Minimum wait before the first reconnect.
    public var backoffMinNanos: UInt64 = 50_000_000
    /// Maximum wait before any reconnect.
    public var backoffMaxNanos: UInt64 = 5_000_000_000

    public init() {}
}
