// SPDX-License-Identifier: Apache-2.0
package import EventLoop
import Synchronization
import Telemetry

/// The devices with a push in flight, for all shards of a process: their queues (`DeviceQueues`) limit it to one per
/// device.
///
/// A device is a cell of a fixed table, found by the hash of app, user and device: two devices with the same cell only
/// wait for each other. A shard that finds a cell taken marks it as awaited; a shard that leaves an awaited cell
/// notifies all shards, because the mark does not name the waiting one. A cell keeps who left it last and when: another
/// shard's push since one's own claim has a newer number. Taking and leaving are one atomic operation each, without
/// locks.
///
/// `@unchecked Sendable`: the pointer never changes, every access to its memory is atomic, and the members have a lock,
/// which is taken once per batch of awaited cells only.
package final class DeviceOccupancy: @unchecked Sendable {
    /// A cell's index.
    package typealias Cell = UInt32

    /// A shard that is notified of awaited cells that were left.
    private struct Member {
        var shard: Int
        var loop: Loop
        var didVacate: @Sendable ([Cell]) -> Void
        var didRelease: @Sendable (ReleasedDevice) -> Void
    }

    private let cells: UnsafeMutablePointer<Atomic<UInt32>>
    private let count: Int
    private let shift: UInt64
    private let nowNanos: @Sendable () -> UInt64
    private let members = Guarded<[Member]>([])

    /// - Parameters:
    ///   - bits: the table has 2 to the power of `bits` cells, of four bytes each; 1 ... 24.
    ///   - nowNanos: the monotonic clock that all shards share.
    package init(bits: Int = 20, nowNanos: @escaping @Sendable () -> UInt64 = Loop.monotonicNanos) {
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

    /// The cell of a device, by its key's hash.
    func cell(of key: UInt64) -> Cell {
        Cell(truncatingIfNeeded: (key &* 0x9E37_79B9_7F4A_7C15) >> shift)
    }

    private func state(_ cell: Cell) -> CellState {
        Int(cell) < count ? CellState(bits: cells[Int(cell)].load(ordering: .acquiring)) : CellState()
    }

    /// - Returns: true if the cell was free and now belongs to the caller. False: it is marked as awaited, and
    ///   `didVacate` will name it.
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

    /// Frees a cell that the caller had taken. Returns true if it is awaited, and `notify` must be called with it.
    func leave(_ cell: Cell, shard: Int) -> Bool {
        guard Int(cell) < count else { return false }
        // Only the cell's holder changes the data about its leaving.
        let next = state(cell).left(by: shard, atMs: nowNanos() / 1_000_000)
        let last = cells[Int(cell)].exchange(next.bits, ordering: .acquiringAndReleasing)
        return CellState(bits: last).use == .awaited
    }

    /// - Returns: whether another shard awaits a cell that the caller has taken.
    func isAwaited(_ cell: Cell) -> Bool { state(cell).use == .awaited }

    /// A device of the cell has a push in flight.
    func isTaken(_ cell: Cell) -> Bool { state(cell).use != .free }

    /// - Returns: whether another shard may have left a cell since then. For the shard that has taken it. Never false
    ///   if one did.
    func wasLeft(_ cell: Cell, byOtherThan shard: Int, since nanos: UInt64) -> Bool {
        state(cell).wasLeft(byOtherThan: shard, sinceMs: nanos / 1_000_000)
    }

    /// Cells that are not free; scans the whole table.
    var takenCount: Int { (0..<count).reduce(0) { $0 + (isTaken(Cell($1)) ? 1 : 0) } }

    // MARK: Notification of the next push

    /// From now on the shard is notified, on its loop, of awaited cells that were left, and of devices that APNs accepts again.
    package func join(
        shard: Int, loop: Loop, didVacate: @escaping @Sendable ([Cell]) -> Void,
        didRelease: @escaping @Sendable (ReleasedDevice) -> Void
    ) {
        members.withLock {
            $0.append(Member(shard: shard, loop: loop, didVacate: didVacate, didRelease: didRelease))
        }
    }

    /// APNs accepted a push of a device that it had wanted left alone.
    func release(_ device: ReleasedDevice) {
        for member in members.withLock({ $0 }) {
            let didRelease = member.didRelease
            member.loop.post { didRelease(device) }
        }
    }

    /// The shard ends and is not notified any more.
    package func part(shard: Int) {
        members.withLock { $0.removeAll { $0.shard == shard } }
    }

    /// Notifies every shard of awaited cells that were left. The caller is notified through its loop too, so that each
    /// has the same chance to be next.
    func notify(_ cells: [Cell]) {
        for member in members.withLock({ $0 }) {
            let didVacate = member.didVacate
            member.loop.post { didVacate(cells) }
        }
    }
}
