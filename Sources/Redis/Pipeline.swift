// SPDX-License-Identifier: Apache-2.0
/// One connection's commands without a reply yet, oldest first.
///
/// Pure: no clock and no socket. RESP2 pairs replies with commands only by order, so one lost or extra reply would give
/// each later tag a wrong answer. A break of the order must end the connection and this value with it.
struct Pipeline: ~Copyable {
    /// The purpose of a reply.
    enum Purpose: Equatable {
        /// Our own greeting: login, database, ping.
        case handshake
        /// ASKING before a command that a cluster node redirected.
        case asking
        /// A query of the client's owner: the slot map, a node's number of keys.
        case inquiry
        /// For a cluster node, the whole command is kept.
        case command
        /// EVALSHA, for a cluster node also EVAL. Its arguments are kept in case Redis does not know the script.
        case script(index: UInt8)
        /// A question for a number of our own: another answer shows that replies and commands are out of step.
        case check
    }

    struct Entry: Equatable {
        var purpose: Purpose
        var operation: UInt8 = 0
        var tag: UInt64
        var sentNanos: UInt64 = 0
        var deadlineNanos: UInt64 = 0
        /// Position of the command's last byte in the connection's output.
        var endOffset: UInt64 = 0
        /// A script call's arguments from the number of its keys on: their number, and their encoded length.
        var argumentCount: Int32 = 0
        var keptBytes = 0
        /// The delegate has its fault already; the rest of its reply is ignored.
        var isTold = false
    }

    enum TimerAction: Equatable {
        case idle
        case rearm(atNanos: UInt64)
        case expired
    }

    private var ring: [Entry?]
    private var head = 0
    private(set) var count = 0

    init() { ring = [Entry?](repeating: nil, count: 64) }

    mutating func append(_ entry: Entry) {
        if count == ring.count { grow() }
        ring[(head &+ count) & (ring.count &- 1)] = entry
        count += 1
    }

    /// Removes the entry of an arrived reply. Nil if no command is open, which is the server's fault.
    mutating func popFirst() -> Entry? {
        guard count > 0 else { return nil }
        let entry = ring[head]
        head = (head &+ 1) & (ring.count &- 1)
        count -= 1
        return entry
    }

    /// The oldest command: its reply comes next.
    var first: Entry? { count > 0 ? ring[head] : nil }

    /// The delegate has the fault of the oldest command.
    mutating func noteTold() {
        if count > 0 { ring[head]?.isTold = true }
    }

    /// The one timer fired: checks whether the oldest command timed out.
    ///
    /// Deadlines rise along the queue because all commands have the same timeout, so the oldest is enough.
    func timerFired(nowNanos: UInt64) -> TimerAction {
        guard count > 0, let first = ring[head] else { return .idle }
        return first.deadlineNanos <= nowNanos ? .expired : .rearm(atNanos: first.deadlineNanos)
    }

    /// The error of a command when the connection ends before its reply.
    ///
    /// Redis runs only complete commands, so a command with an unsent last byte cannot have run.
    static func lossCode(of entry: Entry, flushedOffset: UInt64, nowNanos: UInt64, timedOut: Bool) -> RedisFault.Code {
        let wasSent = entry.endOffset <= flushedOffset
        if timedOut && wasSent && entry.deadlineNanos <= nowNanos { return .timeout }
        return .connectionLost(wasSent: wasSent)
    }

    private mutating func grow() {
        var larger = [Entry?](repeating: nil, count: ring.count * 2)
        for index in 0..<count { larger[index] = ring[(head &+ index) & (ring.count &- 1)] }
        ring = larger
        head = 0
    }
}
