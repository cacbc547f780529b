// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore

/// One push in flight per device (contract section 5, step 16): two streams that finish in the wrong order would show
/// the older badge.
///
/// The key is a hash of app, user and device: a push that waits for a re-bound token keeps its place before newer ones,
/// whatever their token. Two devices with the same hash would only wait for each other. A device without waiting pushes
/// costs one entry while its push is in flight.
///
/// If other shards of the process may push the same device, its cell in their common table is taken too. A push with a
/// free device here and a taken cell stays at the head of its queue until the cell is left.
struct DeviceQueues<Item> {
    /// `DeviceKey.make`.
    typealias Key = UInt64

    /// Shared by the shards of the process; nil with a single shard, which uses none of the following.
    private let occupancy: DeviceOccupancy?
    /// This shard's number.
    private let shard: Int
    private var queues: [HashKey: Queue] = [:]
    /// Devices with a next push that waits for a cell, by cell, in order of arrival.
    private var blocked: [DeviceOccupancy.Cell: [UInt64]] = [:]
    /// Awaited cells that were left, for which devices wait here.
    private var vacated: [DeviceOccupancy.Cell] = []
    /// Awaited cells that were left here: all shards must be notified (`notifyVacated`).
    private var left: [DeviceOccupancy.Cell] = []
    /// Free devices with a next push that was not given out yet.
    private var freed: [UInt64] = []
    private var isServed = false
    /// When the last number of any device was read again.
    private var lastCheckNanos: UInt64 = 0

    init(sharing occupancy: DeviceOccupancy? = nil, shard: Int = 0) {
        self.occupancy = occupancy
        self.shard = shard
    }

    /// Devices with a push in flight, or one that waits for a cell.
    var busyCount: Int { queues.count }
    private(set) var waitingCount = 0
    /// Other shards may push the same devices.
    var isShared: Bool { occupancy != nil }

    /// A push of the device is in flight, here or in another shard, or waits here.
    func isBusy(_ key: Key) -> Bool {
        return queues[HashKey(key)] != nil || (occupancy.map { $0.isTaken($0.cell(of: key)) } ?? false)
    }

    /// A push of the device is in flight or waits here.
    func isBusyHere(_ key: Key) -> Bool { queues[HashKey(key)] != nil }

    /// Whether the device may show a number that was read after this time: another shard has pushed it since, or a push
    /// before this one was checked since. For the push in turn.
    ///
    /// Inlined, because a call would copy the references of all parts.
    @inline(__always)
    func mayShowNumber(_ key: Key, readSince nanos: UInt64) -> Bool {
        if let occupancy, occupancy.wasLeft(occupancy.cell(of: key), byOtherThan: shard, since: nanos) { return true }
        // Usually nothing was checked recently, and the device is not looked up.
        return lastCheckNanos > nanos && (queues[HashKey(key)]?.checkedNanos ?? 0) > nanos
    }

    /// The push in flight, or about to be, carries a number that was read again at this time.
    mutating func didCheck(_ key: Key, atNanos nanos: UInt64) {
        lastCheckNanos = nanos
        queues[HashKey(key)]?.checkedNanos = nanos
    }

    /// A push waits here for the device.
    func hasWaiting(_ key: Key) -> Bool {
        waitingCount > 0 && !(queues[HashKey(key)]?.isEmpty ?? true)
    }

    /// The next push, and the device that it now occupies.
    struct Turn {
        var item: Item
        fileprivate var device: UInt64
    }

    /// The key of a device. It is a hash already: another one would take longer than the rest of a look-up.
    private struct HashKey: Hashable {
        let bits: UInt64

        init(_ bits: UInt64) { self.bits = bits }

        func _rawHashValue(seed: Int) -> Int { Int(truncatingIfNeeded: bits) ^ seed }
    }

    /// FIFO. Entries that were given out are dropped in blocks, so that a long queue needs no shifting.
    private struct Queue {
        private var items: [Item?] = []
        private var head: Int32 = 0
        /// Nothing of the device is in flight here: its next push waits for the device's cell.
        var isBlocked = false
        /// When a push's number was last read again since the device is busy; 0 for never.
        var checkedNanos: UInt64 = 0

        var isEmpty: Bool { head >= items.count }

        mutating func append(_ item: Item) { items.append(item) }

        mutating func popFirst() -> Item? {
            let first = Int(head)
            guard first < items.count else { return nil }
            defer {
                items[first] = nil
                head += 1
                if head >= 64, head * 2 >= items.count {
                    items.removeFirst(Int(head))
                    head = 0
                }
            }
            return items[first]
        }
    }

    /// - Returns: true if the device was free and is now taken by this push. False: the push waits behind the one in
    ///   flight.
    mutating func enter(_ key: Key, _ item: @autoclosure () -> Item) -> Bool {
        // Usually it is free, so it is taken with one lookup, and restored if it is not.
        guard var waiting = queues.updateValue(Queue(), forKey: HashKey(key)) else {
            guard let occupancy, !occupancy.take(occupancy.cell(of: key)) else { return true }
            return wait(for: occupancy.cell(of: key), key, item())
        }
        waiting.append(item())
        queues[HashKey(key)] = waiting
        waitingCount += 1
        return false
    }

    private mutating func wait(for cell: DeviceOccupancy.Cell, _ key: UInt64, _ item: Item) -> Bool {
        var waiting = Queue()
        waiting.append(item)
        waiting.isBlocked = true
        queues[HashKey(key)] = waiting
        waitingCount += 1
        blocked[cell, default: []].append(key)
        return false
    }

    /// The push in flight has ended. Returns true if the caller must now serve `nextTurn` until there is none.
    ///
    /// - Returns: false if a loop further up the stack serves it. A push may end within its own turn (expired while it
    ///   waited), and so may thousands behind it: each then only notes its device, instead of starting the next
    ///   recursively.
    mutating func leave(_ key: Key) -> Bool { free(key) }

    /// The push with the turn has disappeared: the device goes to the next.
    mutating func pass(_ turn: Turn) {
        _ = free(turn.device)
    }

    private mutating func free(_ device: UInt64) -> Bool {
        freed.append(device)
        return beginServing()
    }

    private mutating func beginServing() -> Bool {
        defer { isServed = true }
        return !isServed
    }

    /// The next push with a free device; nil ends the serving.
    mutating func nextTurn() -> Turn? {
        while let device = freed.popLast() {
            guard let index = queues.index(forKey: HashKey(device)), !queues.values[index].isBlocked else { continue }
            if queues.values[index].isEmpty {
                queues.remove(at: index)
                leaveCell(of: device)
            } else if let occupancy, occupancy.isAwaited(occupancy.cell(of: device)) {
                // Another one's turn: this queue waits with the others.
                queues.values[index].isBlocked = true
                blocked[occupancy.cell(of: device), default: []].append(device)
                leaveCell(of: device)
            } else if let turn = turn(of: device, at: index) {
                return turn
            }
        }
        while let cell = vacated.last {
            if let turn = nextTurn(in: cell) { return turn }
            vacated.removeLast()
        }
        isServed = false
        return nil
    }

    private mutating func turn(of device: UInt64, at index: Dictionary<HashKey, Queue>.Index) -> Turn? {
        guard let item = queues.values[index].popFirst() else { return nil }
        waitingCount -= 1
        return Turn(item: item, device: device)
    }

    // MARK: Cells shared with other shards

    /// These awaited cells were left. Returns true if the caller must now serve `nextTurn` until there is none.
    mutating func vacate(_ cells: [DeviceOccupancy.Cell]) -> Bool {
        for cell in cells where blocked[cell] != nil { vacated.append(cell) }
        return !vacated.isEmpty && beginServing()
    }

    /// The oldest device that waits for the cell, if the cell can be taken now; otherwise the cell is marked as awaited
    /// again.
    private mutating func nextTurn(in cell: DeviceOccupancy.Cell) -> Turn? {
        while let occupancy, let device = blocked[cell]?.first, occupancy.take(cell) {
            blocked[cell]?.removeFirst()
            if blocked[cell]?.isEmpty ?? true { blocked[cell] = nil }
            if let index = queues.index(forKey: HashKey(device)) {
                queues.values[index].isBlocked = false
                if let turn = turn(of: device, at: index) { return turn }
            }
            leaveCell(of: device)
        }
        return nil
    }

    private mutating func leaveCell(of device: UInt64) {
        guard let occupancy else { return }
        let cell = occupancy.cell(of: device)
        if occupancy.leave(cell, shard: shard) { left.append(cell) }
    }

    /// Notifies all shards, this one too. A single shard has nobody to notify.
    func release(_ device: ReleasedDevice) { occupancy?.release(device) }

    /// Whether all shards must be notified of cells that were left.
    var hasLeft: Bool { !left.isEmpty }

    /// The awaited cells that were left since the last call.
    mutating func takeLeft() -> [DeviceOccupancy.Cell] {
        defer { left = [] }
        return left
    }

    /// Notifies all shards, this one too, of the awaited cells that were left since the last call.
    mutating func notifyVacated() {
        if !left.isEmpty { occupancy?.notify(takeLeft()) }
    }

    /// The shard ends: its cells are left to the others, and nothing waits any more.
    mutating func close() {
        for (device, queue) in queues where !queue.isBlocked { leaveCell(of: device.bits) }
        notifyVacated()
        queues = [:]
        blocked = [:]
        vacated = []
        freed = []
        waitingCount = 0
    }
}

/// The hash of app, user and device: equal in all shards of the process, and unpredictable from outside, because a
/// collision makes another user wait. The library seeds its hasher per process.
enum DeviceKey {
    static func make(app: String, uid: String, device: String) -> UInt64 {
        // Hashes the bytes, because the hash of a String would normalise it first.
        var hasher = Hasher()
        add(app, to: &hasher)
        add(uid, to: &hasher)
        add(device, to: &hasher)
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    private static func add(_ part: String, to hasher: inout Hasher) {
        part.withUTF8Bytes { bytes in
            hasher.combine(bytes.count)
            hasher.combine(bytes: bytes)
        }
    }
}
