// SPDX-License-Identifier: Apache-2.0
/// The data besides its bytes that a cluster command needs to be sent again.
struct CommandHead: Equatable, BitwiseCopyable {
    let slot: UInt16
    /// Number of redirects and delays so far.
    var tries: UInt8 = 0
    let order: RedisOrder
    /// Rises with each command of the client. Waiting commands of a slot continue in this order.
    let sequence: UInt64
    /// Time when the client received it, monotonic.
    let startNanos: UInt64

    static let byteCount = MemoryLayout<CommandHead>.size
}

/// Whether the client may resend a command that a cluster did not execute.
public enum RedisOrder: UInt8, Sendable, BitwiseCopyable {
    /// It may, even after commands that were sent later.
    case free
    /// It may not: later commands depend on it, or it continues work of one server. It fails with the cluster's error
    /// (`.moved`, `.ask`, …), and its sender starts over.
    case fixed
}

/// A cluster command without its bytes.
struct NodeCall {
    var head: CommandHead
    let tag: UInt64
    let operation: UInt8
    /// A script's call: the arguments begin with the number of its keys.
    let script: RedisScript?
    let argumentCount: Int
}

/// A cluster command to be resent: its arguments in wire form.
struct KeptCommand {
    var call: NodeCall
    let encoded: [UInt8]

    var head: CommandHead { call.head }
}
