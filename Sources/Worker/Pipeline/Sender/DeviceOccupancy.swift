import EventLoop
import Synchronization
import Telemetry

/// Which devices have a push out, for all shards of a process: their queues (`DeviceQueues`) hold it to one per device.
///
/// A device is a cell of a fixed table, found by a hash of its token: two devices that share a cell only wait for each
/// other. Who finds a cell taken marks it as awaited; whoever leaves an awaited cell tells all shards, since the mark does
/// not say who waits. A cell keeps who left it last and when: another shard's push since one's own claim has a newer number.
/// Taking and leaving are one atomic operation each, without locks.
///
/// `@unchecked Sendable`: the pointer never changes, every access to what it points at is atomic, and the members have
/// their lock, which is taken once per batch of awaited cells only.
final class DeviceOccupancy: @unchecked Sendable {
    /// A cell's index.
    typealias Cell = UInt32

    /// A shard that is told of cells which were left while somebody awaited them.
    private struct Member {
        var shard: Int
        var loop: Loop
        var didVacate: @Sendable ([Cell]) -> Void
    }

    private let cells: UnsafeMutablePointer<Atomic<UInt32>>
    private let count: Int
    private let shift: UInt64
    private let nowNanos: @Sendable () -> UInt64
    private let members = Guarded<[Member]>([])

    /// - Parameters:
    ///   - bits: the table has 2 to the power of so many cells, of four bytes each; 1 ... 24.
    ///   - nowNanos: the monotonic clock that all shards share.
    init(bits: Int = 20, nowNanos: @escaping @Sendable () -> UInt64 = Loop.monotonicNanos) {
        let bits = min(max(bits, 1), 24)
        count = 1 << bits
        shift = UInt64(64 - bits)
        self.nowNanos = nowNanos
        cells = .allocate(capacity: count)
        for index in 0..<count { (cells + index).initialize(to: Atomic(CellState().bits)) }
    }

    deinit {
        cells.deinitialize(count: count)
        cells.deallocate()
    }

    /// The cell of a device, by the hash of its token.
    func cell(of key: UInt64) -> Cell {
        Cell(truncatingIfNeeded: (key &* 0x9E37_79B9_7F4A_7C15) >> shift)
    }

    private func state(_ cell: Cell) -> CellState {
        Int(cell) < count ? CellState(bits: cells[Int(cell)].load(ordering: .acquiring)) : CellState()
    }

    /// True: the cell was free and is the caller's now. False: it is marked as awaited, and `didVacate` will name it.
    func take(_ cell: Cell) -> Bool {
        guard Int(cell) < count else { return true }
        while true {
            let seen = state(cell)
            if seen.use == .awaited { return false }
            let next = seen.with(seen.use == .free ? .taken : .awaited)
            let isExchanged = cells[Int(cell)].compareExchange(
                expected: seen.bits, desired: next.bits, ordering: .acquiringAndReleasing
            ).exchanged
            if isExchanged { return next.use == .taken }
        }
    }

    /// Frees a cell that the caller had taken. True: somebody awaits it, and `notify` is to be called with it.
    func leave(_ cell: Cell, shard: Int) -> Bool {
        guard Int(cell) < count else { return false }
        // Only whoever has the cell changes what is kept of its leaving.
        let next = state(cell).left(by: shard, atMs: nowNanos() / 1_000_000)
        let last = cells[Int(cell)].exchange(next.bits, ordering: .acquiringAndReleasing)
        return CellState(bits: last).use == .awaited
    }

    /// Whether somebody awaits a cell that the caller has taken.
    func isAwaited(_ cell: Cell) -> Bool { state(cell).use == .awaited }

    /// Somebody has a push out to a device of the cell.
    func isTaken(_ cell: Cell) -> Bool { state(cell).use != .free }

    /// Whether another shard may have left a cell since then, to be asked by whoever has taken it. Never false where one did.
    func wasLeft(_ cell: Cell, byOtherThan shard: Int, since nanos: UInt64) -> Bool {
        state(cell).wasLeft(byOtherThan: shard, sinceMs: nanos / 1_000_000)
    }

    /// Cells that are not free; looks at the whole table.
    var takenCount: Int { (0..<count).reduce(0) { $0 + (isTaken(Cell($1)) ? 1 : 0) } }

    // MARK: Who is told

    /// From now on the shard hears, on its loop, of cells that were left while somebody awaited them.
    func join(shard: Int, loop: Loop, didVacate: @escaping @Sendable ([Cell]) -> Void) {
        members.withLock { $0.append(Member(shard: shard, loop: loop, didVacate: didVacate)) }
    }

    /// The shard ends and hears no more.
    func part(shard: Int) {
        members.withLock { $0.removeAll { $0.shard == shard } }
    }

    /// Notifies every shard of awaited cells that were left; the caller too hears of them by its loop, so that each has the
    /// same chance to be next.
    func notify(_ cells: [Cell]) {
        for member in members.withLock({ $0 }) {
            let didVacate = member.didVacate
            member.loop.post { didVacate(cells) }
        }
    }
}
