// SPDX-License-Identifier: Apache-2.0
/// The unsettled range of one partition: a ring from the oldest unsettled record to the newest received one.
///
/// Grows by doubling and never shrinks within one assignment, so a record costs no allocation of its own.
struct OffsetWindow {
    private struct Entry {
        var offset: Int64
        var receivedNanos: UInt64
        var bytes: UInt32
        var isSettled: Bool
    }

    let partition: TopicPartition
    /// Rises with each assignment and revocation, so that earlier handles match nothing.
    private(set) var epoch: UInt32 = 0
    private(set) var isAssigned = false
    /// The next committable offset; nil until something was settled in this assignment.
    private(set) var next: Int64?
    private(set) var unsettledCount = 0
    private(set) var unsettledBytes = 0
    /// Time of the pause; nil while it may be read.
    var pausedAtNanos: UInt64?
    /// Assigned and not paused.
    var isRead: Bool { isAssigned && pausedAtNanos == nil }

    private var ring: [Entry] = []
    /// Sequence numbers of the oldest entry and of the next one. The low bits are the index in the ring.
    private var head: UInt64 = 0
    private var tail: UInt64 = 0
    /// The newest offset that is received, or passed without a record; -1 for none.
    private var newest: Int64 = -1
    /// The newest time of the received records, Unix ms.
    private(set) var newestMs: Int64?
    /// The first received offset of this assignment, and the group's offset at its start; nil until known.
    private var first: Int64?
    private var committed: Int64?
    /// Offsets that the previous owner had settled beyond the committed one; nil once reading has passed them.
    private var settledBefore: SettledOffsets?

    init(partition: TopicPartition) { self.partition = partition }

    /// Number of entries: unsettled ones and settled ones after them.
    var count: Int { Int(truncatingIfNeeded: tail &- head) }

    var oldestReceivedNanos: UInt64? { head == tail ? nil : ring[place(head)].receivedNanos }

    mutating func open() {
        reset()
        isAssigned = true
    }

    mutating func close() {
        reset()
        isAssigned = false
    }

    private mutating func reset() {
        epoch &+= 1
        ring = []
        head = 0
        tail = 0
        newest = -1
        newestMs = nil
        first = nil
        committed = nil
        settledBefore = nil
        next = nil
        unsettledCount = 0
        unsettledBytes = 0
        pausedAtNanos = nil
    }

    enum Admission: Equatable {
        case tracked(sequence: UInt64)
        /// The previous owner settled it.
        case settledBefore
        /// Already seen in this assignment.
        case repeated
        /// The list of settled offsets, and so the committed offset, is of another epoch of the partition.
        case otherEpoch
    }

    /// Adds an offset above all earlier ones.
    mutating func append(offset: Int64, bytes: Int, nowNanos: UInt64, timeMs: Int64? = nil) -> Admission {
        // A rewind, for example after resuming a partition that was not paused, delivers unsettled or settled records
        // again.
        if offset <= newest { return .repeated }
        if isOfOtherEpoch(offset, timeMs) {
            settledBefore = nil
            return .otherEpoch
        }
        if let timeMs { newestMs = max(timeMs, newestMs ?? timeMs) }
        if first == nil { first = offset }
        newest = offset
        if count == ring.count { grow() }
        let sequence = tail
        let size = UInt32(clamping: bytes)
        let isSettled = takeSettledBefore(offset)
        ring[place(sequence)] = Entry(offset: offset, receivedNanos: nowNanos, bytes: size, isSettled: isSettled)
        tail &+= 1
        if isSettled {
            if sequence == head { advance() }
            return .settledBefore
        }
        unsettledCount += 1
        unsettledBytes += Int(size)
        return .tracked(sequence: sequence)
    }

    /// A record that is newer than all that were read when its offset was listed as settled.
    private func isOfOtherEpoch(_ offset: Int64, _ timeMs: Int64?) -> Bool {
        guard let before = settledBefore, let timeMs, let listedMs = before.newestMs else { return false }
        return timeMs > listedMs && before.contains(offset)
    }

    private mutating func takeSettledBefore(_ offset: Int64) -> Bool {
        guard let before = settledBefore else { return false }
        if offset &+ 1 >= before.end { settledBefore = nil }
        return before.contains(offset)
    }

    /// The group's offset, and the settled offsets beyond it. Once for each assignment.
    mutating func noteCommitted(_ offset: Int64, settled: SettledOffsets?) {
        guard committed == nil else { return }
        committed = offset
        settledBefore = settled
    }

    /// There is no record between these offsets. That says nothing if a record before them did not come here.
    mutating func pass(from start: Int64, to offset: Int64) {
        guard let due = newest >= 0 ? newest + 1 : committed, start <= due, offset > due else { return }
        newest = offset - 1
        if head == tail { next = offset }
    }

    /// The offset below which all received records are settled; nil before the first record.
    var settledEnd: Int64? { next ?? first }

    /// The committable offset, and the settled offsets beyond it; nil while that adds nothing for a group without
    /// offsets. Takes a step per record in the window.
    var progress: (offset: Int64, settled: SettledOffsets?)? {
        guard let offset = settledEnd else { return nil }
        var settled = SettledOffsets(base: offset)
        var sequence = unsettledCount < count ? head : tail
        while sequence < tail, ring[place(sequence)].offset &- offset < SettledOffsets.capacity {
            if ring[place(sequence)].isSettled { settled.insert(ring[place(sequence)].offset) }
            sequence &+= 1
        }
        // Keeps offsets that were not read again yet.
        if let before = settledBefore {
            var later = max(newest &+ 1, offset)
            while later < before.end, later &- offset < SettledOffsets.capacity {
                if before.contains(later) { settled.insert(later) }
                later &+= 1
            }
        }
        // Offsets that are kept from a list without a time may be newer than all that was read here.
        if let ms = newestMs, settledBefore == nil || settledBefore?.newestMs != nil {
            settled.newestMs = max(ms, settledBefore?.newestMs ?? ms)
        }
        if next == nil, settled.isEmpty { return nil }
        return (offset, settled.isEmpty ? nil : settled)
    }

    enum Step: Equatable {
        case advanced(next: Int64), waiting, unknown
    }

    mutating func settle(_ sequence: UInt64) -> Step {
        guard sequence >= head, sequence < tail, !ring[place(sequence)].isSettled else { return .unknown }
        let index = place(sequence)
        ring[index].isSettled = true
        unsettledCount -= 1
        unsettledBytes -= Int(ring[index].bytes)
        if sequence != head { return .waiting }
        return .advanced(next: advance())
    }

    /// Drops the settled records at the front (at least one). Returns the next offset.
    @discardableResult
    private mutating func advance() -> Int64 {
        var last = ring[place(head)].offset
        while head < tail, ring[place(head)].isSettled {
            last = ring[place(head)].offset
            head &+= 1
        }
        // Offsets between two received records do not exist (compaction, transaction markers), so the offset after the
        // last settled record is valid. So is the one after all that was passed.
        let following = head == tail ? newest + 1 : last + 1
        next = following
        return following
    }

    private func place(_ sequence: UInt64) -> Int {
        Int(truncatingIfNeeded: sequence) & (ring.count - 1)
    }

    private mutating func grow() {
        let empty = Entry(offset: -1, receivedNanos: 0, bytes: 0, isSettled: false)
        var wider = [Entry](repeating: empty, count: max(64, ring.count * 2))
        let mask = wider.count - 1
        var sequence = head
        while sequence < tail {
            wider[Int(truncatingIfNeeded: sequence) & mask] = ring[place(sequence)]
            sequence &+= 1
        }
        ring = wider
    }
}
