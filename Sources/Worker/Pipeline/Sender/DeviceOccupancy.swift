import EventLoop
import Synchronization
import Telemetry

/// Which devices have a push out, for all shards of a process: their queues (`DeviceQueues`) hold it to one per device.
///
/// A device is a cell of a fixed table, found by a hash of its token: two devices that share a cell only wait for each
/// other. Who finds a cell taken marks it as awaited; whoever leaves an awaited cell tells all shards, since the mark does
/// not say who waits. Taking and leaving are one atomic operation each, without locks.
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

    private static let free: UInt8 = 0
    private static let taken: UInt8 = 1
    private static let awaited: UInt8 = 2

    private let cells: UnsafeMutablePointer<Atomic<UInt8>>
    private let count: Int
    private let shift: UInt64
    private let members = Guarded<[Member]>([])

    /// - Parameter bits: the table has 2 to the power of so many cells, of a byte each; 1 ... 24.
    init(bits: Int = 20) {
        let bits = min(max(bits, 1), 24)
        count = 1 << bits
        shift = UInt64(64 - bits)
        cells = .allocate(capacity: count)
        for index in 0..<count { (cells + index).initialize(to: Atomic(Self.free)) }
    }

    deinit {
        cells.deinitialize(count: count)
        cells.deallocate()
    }

    /// The cell of a device, by the hash of its token.
    func cell(of key: UInt64) -> Cell {
        Cell(truncatingIfNeeded: (key &* 0x9E37_79B9_7F4A_7C15) >> shift)
    }

    /// True: the cell was free and is the caller's now. False: it is marked as awaited, and `didVacate` will name it.
    func take(_ cell: Cell) -> Bool {
        guard Int(cell) < count else { return true }
        let state = cells + Int(cell)
        while true {
            let seen = state.pointee.compareExchange(
                expected: Self.free, desired: Self.taken, ordering: .acquiringAndReleasing
            ).original
            if seen == Self.free { return true }
            if seen == Self.awaited { return false }
            let marked = state.pointee.compareExchange(
                expected: Self.taken, desired: Self.awaited, ordering: .acquiringAndReleasing
            ).original
            // It was left in between: it may be free now.
            if marked != Self.free { return false }
        }
    }

    /// Frees a cell that the caller had taken. True: somebody awaits it, and `tell` is to be called with it.
    func leave(_ cell: Cell) -> Bool {
        guard Int(cell) < count else { return false }
        return cells[Int(cell)].exchange(Self.free, ordering: .acquiringAndReleasing) == Self.awaited
    }

    /// Whether somebody awaits a cell that the caller has taken.
    func isAwaited(_ cell: Cell) -> Bool {
        Int(cell) < count && cells[Int(cell)].load(ordering: .relaxed) == Self.awaited
    }

    /// Somebody has a push out to a device of the cell.
    func isTaken(_ cell: Cell) -> Bool {
        Int(cell) < count && cells[Int(cell)].load(ordering: .relaxed) != Self.free
    }

    /// Cells that are not free; looks at the whole table.
    var takenCount: Int {
        (0..<count).reduce(0) { $0 + (cells[$1].load(ordering: .relaxed) == Self.free ? 0 : 1) }
    }

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
