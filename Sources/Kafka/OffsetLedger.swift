// SPDX-License-Identifier: Apache-2.0
/// Tracks unsettled records, and up to which offset each partition is settled without a gap.
///
/// Pure: no clock, no Kafka. `receive` each record, `settle` its slot when all of its consequences are done (in any
/// order), commit `progress`. Records of a revoked partition settle without an effect. A record costs constant time and
/// no allocation; the memory is 24 bytes per record in the window.
public struct OffsetLedger: ~Copyable {
    /// Bounds of unsettled work at which reading should pause.
    public struct Limits: Equatable, Sendable {
        /// Unsettled records of each partition.
        public var records: Int
        /// For each partition: offsets from the oldest unsettled record to the newest received one; at least `records`.
        public var span: Int
        /// For all partitions together: bytes of unsettled records.
        public var bytes: Int
        /// Pause at this share of a limit, resume below it.
        public var pausePercent: Int
        public var resumePercent: Int
        /// An earlier resume would cause rapid switching, and each pause drops the prefetched records.
        public var minimumPauseNanos: UInt64

        public init(
            records: Int = 20_000, span: Int = 0, bytes: Int = 64 << 20, pausePercent: Int = 80,
            resumePercent: Int = 50, minimumPauseNanos: UInt64 = 3_000_000_000
        ) {
            self.records = max(1, records)
            self.span = max(self.records, span)
            self.bytes = max(1, bytes)
            self.pausePercent = min(max(pausePercent, 1), 100)
            self.resumePercent = min(max(resumePercent, 0), self.pausePercent - 1)
            self.minimumPauseNanos = minimumPauseNanos
        }
    }

    /// An unsettled record; 16 bytes, carried along with it. Valid for one `settle`.
    public struct Slot: Hashable, Sendable {
        let window: UInt32
        let epoch: UInt32
        let sequence: UInt64
    }

    public enum Receipt: Equatable, Sendable {
        /// Process it, then settle.
        case tracked(Slot)
        /// The previous owner settled it, according to `noteCommitted`: nothing to do.
        case settledBefore
        /// Seen before in this assignment (a rewind), unsettled or settled: skip it.
        case repeated
        /// The committed offset is of another epoch of the partition, by its list of settled offsets: skip the record and
        /// `rewind` the partition.
        case otherEpoch
        /// Not assigned (any more): skip it, its owner gets it.
        case unassigned
    }

    public enum Settlement: Equatable, Sendable {
        /// Everything below `next` is settled.
        case advanced(TopicPartition, next: Int64)
        /// Settled, but an older record is not.
        case waiting
        /// From before a revocation, or settled twice: nothing to do.
        case stale
    }

    public enum Pressure: Equatable, Sendable {
        case unchanged, pause, resume
    }

    /// May be changed at any time.
    public var limits: Limits
    /// Unsettled records and their bytes over all partitions.
    public private(set) var unsettledCount = 0
    public private(set) var unsettledBytes = 0
    /// The byte bound of all partitions is reached, and some are still read: ask for the pressure on each.
    public var isReadAtByteBound: Bool { isAtByteBound && readCount > 0 }
    /// Settles after a revocation or repeated settles; for a counter.
    public private(set) var staleCount: UInt64 = 0

    private var isAtByteBound: Bool { unsettledBytes >= limits.bytes }
    /// Partitions that are assigned and not paused.
    private var readCount = 0
    private var windows: [OffsetWindow] = []
    /// Topic → partition → index into `windows`, -1 for never assigned.
    private var places: [[Int32]] = []

    public init(limits: Limits = Limits()) { self.limits = limits }

    /// Starts a new epoch of a partition; earlier knowledge of it is dropped.
    ///
    /// - Returns: false for numbers that no real cluster has.
    @discardableResult
    public mutating func assign(_ partition: TopicPartition) -> Bool {
        guard let index = makeIndex(partition) else { return false }
        forget(index)
        windows[index].open()
        readCount += 1
        return true
    }

    /// The group's committed offset when the partition was assigned; nil if it had none.
    ///
    /// May come before or after the first record. Offsets settled beyond it apply to later records.
    public mutating func noteCommitted(_ partition: TopicPartition, offset: Int64?, settled: SettledOffsets? = nil) {
        guard let offset, offset >= 0, let index = index(of: partition), windows[index].isAssigned else { return }
        windows[index].noteCommitted(offset, settled: settled)
    }

    /// There is no record between these offsets of the partition: they are settled with those before them.
    public mutating func pass(_ partition: TopicPartition, from start: Int64, to offset: Int64) {
        guard offset < .max, let index = index(of: partition), windows[index].isAssigned else { return }
        windows[index].pass(from: start, to: offset)
    }

    /// The committable progress of a partition: the offset below which everything is settled, and the settled offsets
    /// beyond it. Nil if there is none yet.
    public func progress(of partition: TopicPartition) -> PartitionOffset? {
        index(of: partition).flatMap { windows[$0].progress }.map {
            PartitionOffset(partition: partition, offset: $0.offset, settled: $0.settled)
        }
    }

    /// Ends the epoch. Returns the last committable offset; nil if nothing was settled or it is not assigned.
    @discardableResult
    public mutating func revoke(_ partition: TopicPartition) -> Int64? {
        guard let index = index(of: partition), windows[index].isAssigned else { return nil }
        let next = windows[index].next
        forget(index)
        windows[index].close()
        return next
    }

    /// Adds a record. Offsets of a partition rise, with any gaps.
    ///
    /// - Parameter timeMs: the record's time in Kafka, Unix ms; nil: it has none.
    public mutating func receive(
        _ partition: TopicPartition, offset: Int64, bytes: Int, nowNanos: UInt64, timeMs: Int64? = nil
    ) -> Receipt {
        guard let index = index(of: partition), windows[index].isAssigned, offset >= 0, offset < .max else {
            return .unassigned
        }
        let before = windows[index].unsettledBytes
        switch windows[index].append(offset: offset, bytes: bytes, nowNanos: nowNanos, timeMs: timeMs) {
        case .repeated: return .repeated
        case .otherEpoch: return .otherEpoch
        case .settledBefore: return .settledBefore
        case .tracked(let sequence):
            unsettledCount += 1
            unsettledBytes += windows[index].unsettledBytes - before
            return .tracked(Slot(window: UInt32(index), epoch: windows[index].epoch, sequence: sequence))
        }
    }

    /// All consequences of the record are done.
    public mutating func settle(_ slot: Slot) -> Settlement {
        let index = Int(slot.window)
        guard index < windows.count, windows[index].epoch == slot.epoch else {
            staleCount &+= 1
            return .stale
        }
        let before = windows[index].unsettledBytes
        let step = windows[index].settle(slot.sequence)
        if step == .unknown {
            staleCount &+= 1
            return .stale
        }
        unsettledCount -= 1
        unsettledBytes -= before - windows[index].unsettledBytes
        guard case .advanced(let next) = step else { return .waiting }
        return .advanced(windows[index].partition, next: next)
    }

    /// The action for reading this partition; each change is reported once. Ask after receiving and settling, and from
    /// a timer while something is paused.
    ///
    /// The byte bound is shared: above its pausing share the partition with the most bytes is paused; at the full bound
    /// every partition that is asked about. A partition with fewer bytes than another resumes below the pausing share,
    /// so that one partition's blocked records do not stop the others.
    public mutating func pressure(on partition: TopicPartition, nowNanos: UInt64) -> Pressure {
        guard let index = index(of: partition), windows[index].isAssigned else { return .unchanged }
        guard let since = windows[index].pausedAtNanos else {
            guard isFull(index) else { return .unchanged }
            windows[index].pausedAtNanos = nowNanos
            readCount -= 1
            return .pause
        }
        // `&-` because a caller's clock value may be a turn old.
        let waited = nowNanos >= since ? nowNanos &- since : 0
        if waited < limits.minimumPauseNanos || !hasRoom(index) { return .unchanged }
        windows[index].pausedAtNanos = nil
        readCount += 1
        return .resume
    }

    /// Unsettled records of one partition; 0 is drained.
    public func unsettled(in partition: TopicPartition) -> Int {
        index(of: partition).map { windows[$0].unsettledCount } ?? 0
    }

    /// The committable offset; nil until something was settled in this assignment.
    public func next(_ partition: TopicPartition) -> Int64? {
        index(of: partition).flatMap { windows[$0].next }
    }

    /// The offset below which all records received in this assignment are settled; nil before the first record.
    public func settledEnd(_ partition: TopicPartition) -> Int64? {
        index(of: partition).flatMap { windows[$0].settledEnd }
    }

    /// The newest time of the records received in this assignment, Unix ms; nil: there is none.
    public func newestMs(_ partition: TopicPartition) -> Int64? {
        index(of: partition).flatMap { windows[$0].newestMs }
    }

    /// Use of a partition's window, 1 = at a limit (the shared byte limit included); for a gauge.
    public func windowUsed(_ partition: TopicPartition) -> Double {
        guard let index = index(of: partition) else { return 0 }
        return max(
            Double(windows[index].unsettledCount) / Double(limits.records),
            Double(windows[index].count) / Double(limits.span),
            Double(unsettledBytes) / Double(limits.bytes))
    }

    /// Age of the oldest unsettled record over all partitions; nil if there is none.
    public func oldestUnsettledAgeNanos(nowNanos: UInt64) -> UInt64? {
        var oldest: UInt64?
        for window in windows {
            guard let received = window.oldestReceivedNanos else { continue }
            oldest = min(oldest ?? .max, received)
        }
        return oldest.map { nowNanos >= $0 ? nowNanos - $0 : 0 }
    }

    /// The same for one partition.
    public func oldestUnsettledAgeNanos(in partition: TopicPartition, nowNanos: UInt64) -> UInt64? {
        index(of: partition).flatMap { windows[$0].oldestReceivedNanos }.map { nowNanos >= $0 ? nowNanos - $0 : 0 }
    }

    private func isFull(_ index: Int) -> Bool {
        if isAtLeast(limits.pausePercent, windows[index].unsettledCount, of: limits.records) { return true }
        if isAtLeast(limits.pausePercent, windows[index].count, of: limits.span) { return true }
        if isAtByteBound { return true }
        return isAtLeast(limits.pausePercent, unsettledBytes, of: limits.bytes) && holdsMost(index)
    }

    private func hasRoom(_ index: Int) -> Bool {
        if isAtLeast(limits.resumePercent, windows[index].unsettledCount, of: limits.records) { return false }
        if isAtLeast(limits.resumePercent, windows[index].count, of: limits.span) { return false }
        if !isAtLeast(limits.resumePercent, unsettledBytes, of: limits.bytes) { return true }
        if isAtLeast(limits.pausePercent, unsettledBytes, of: limits.bytes) { return false }
        return !holdsMost(index, countsPaused: true)
    }

    private func isAtLeast(_ percent: Int, _ value: Int, of limit: Int) -> Bool {
        Double(value) >= Double(limit) * Double(percent) / 100
    }

    /// - Returns: whether no other partition that is read has more bytes; with `countsPaused` no other partition at
    ///   all.
    private func holdsMost(_ index: Int, countsPaused: Bool = false) -> Bool {
        let own = windows[index].unsettledBytes
        return windows.allSatisfy { window in
            window.unsettledBytes <= own || (!countsPaused && window.pausedAtNanos != nil)
        }
    }

    private mutating func forget(_ index: Int) {
        unsettledCount -= windows[index].unsettledCount
        unsettledBytes -= windows[index].unsettledBytes
        if windows[index].isRead { readCount -= 1 }
    }

    private func index(of partition: TopicPartition) -> Int? {
        guard partition.topic >= 0, partition.topic < places.count, partition.partition >= 0 else { return nil }
        let number = Int(partition.partition)
        guard number < places[partition.topic].count else { return nil }
        let index = places[partition.topic][number]
        return index < 0 ? nil : Int(index)
    }

    private mutating func makeIndex(_ partition: TopicPartition) -> Int? {
        if let index = index(of: partition) { return index }
        // The numbers come from the broker, so the size of the tables is bounded.
        guard (0..<1000).contains(partition.topic), (0..<1_000_000).contains(partition.partition) else { return nil }
        while places.count <= partition.topic { places.append([]) }
        let missing = Int(partition.partition) + 1 - places[partition.topic].count
        if missing > 0 { places[partition.topic].append(contentsOf: repeatElement(-1, count: missing)) }
        places[partition.topic][Int(partition.partition)] = Int32(windows.count)
        windows.append(OffsetWindow(partition: partition))
        return windows.count - 1
    }
}
