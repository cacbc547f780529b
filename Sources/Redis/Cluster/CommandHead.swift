/// What must be known of a command of a cluster to send it again elsewhere, beside its bytes.
struct CommandHead: Equatable, BitwiseCopyable {
    let slot: UInt16
    /// How often it was redirected or put off.
    var tries: UInt8 = 0
    let order: RedisOrder
    /// Rises with each command of the client: those of a slot that wait go on in this order.
    let sequence: UInt64
    /// When it was given to the client, monotonic.
    let startNanos: UInt64

    static let byteCount = MemoryLayout<CommandHead>.size
}

/// Whether a command may be sent again by the client itself where a cluster did not carry it out.
public enum RedisOrder: UInt8, Sendable, BitwiseCopyable {
    /// It may, also behind commands that were sent later.
    case free
    /// It may not: what is sent behind it builds on it, or it continues what one server has begun. It fails with what the
    /// cluster said (`.moved`, `.ask`, …), and whoever sent it begins anew.
    case fixed
}

/// A command of a cluster without its bytes.
struct NodeCall {
    var head: CommandHead
    let tag: UInt64
    let operation: UInt8
    /// A script's call: the arguments begin with the number of its keys.
    let script: RedisScript?
    let argumentCount: Int
}

/// A command of a cluster that is to be sent again: its arguments as they go over the wire.
struct KeptCommand {
    var call: NodeCall
    let encoded: [UInt8]

    var head: CommandHead { call.head }
}
