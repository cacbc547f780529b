/// The commands of one connection that wait for their replies, oldest first.
///
/// Pure: no clock and no socket. RESP2 pairs replies with commands by order alone, so one lost or extra reply would
/// give each later tag a stranger's answer; whatever breaks the order must end the connection and this value with it.
struct Pipeline: ~Copyable {
    /// What a reply is for.
    enum Purpose: Equatable {
        /// Our own greeting: login, database, ping.
        case handshake
        /// ASKING before a command that a cluster's node sent on.
        case asking
        /// A question of the client's owner: the map of a cluster's slots, keys of a node.
        case inquiry
        /// Of a cluster's node, it is kept whole.
        case command
        /// EVALSHA, of a cluster's node EVAL too; its arguments are kept in case Redis does not know the script.
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
        /// The command's last byte, counted from the start of the connection.
        var endOffset: UInt64 = 0
        /// Arguments of a script call from the number of its keys on: how many, and their encoded length.
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

    /// A reply has come: whose is it? Nil when nobody asked, which is the server's fault.
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

    /// The one timer fired: has the oldest command run out of time?
    ///
    /// Deadlines rise along the row because all commands get the same time, so the oldest speaks for all.
    func timerFired(nowNanos: UInt64) -> TimerAction {
        guard count > 0, let first = ring[head] else { return .idle }
        return first.deadlineNanos <= nowNanos ? .expired : .rearm(atNanos: first.deadlineNanos)
    }

    /// What a command hears when the connection ends before its reply.
    ///
    /// Redis runs complete commands only, so one whose last byte never left this process cannot have run.
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
