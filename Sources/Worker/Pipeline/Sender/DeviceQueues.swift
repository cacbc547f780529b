import PushCore

/// One push in flight per device (contract section 5, step 16): two streams that finish in the wrong order would show
/// the older badge.
///
/// Keyed by a hash of app, user and device: what waits for a token that the user binds anew keeps its place before what is
/// newer, whichever token that goes to. Two devices that share a hash would only wait for each other. A device that waits
/// for nothing costs one entry while its push is out.
///
/// Where other shards of the process may push the same device, its cell of their common table is taken too. A push whose
/// device is free here and whose cell is taken stays at the head of its queue until the cell is left.
struct DeviceQueues<Item> {
    /// `DeviceKey.make`.
    typealias Key = UInt64

    /// Shared by the shards of the process; nil: this is the only one, and nothing of the below is touched.
    private let occupancy: DeviceOccupancy?
    /// This shard's number among those that share.
    private let shard: Int
    private var queues: [UInt64: Queue] = [:]
    /// Devices whose next push waits for a cell, by cell, in the order in which they came.
    private var blocked: [DeviceOccupancy.Cell: [UInt64]] = [:]
    /// Cells that were awaited and left, for which devices wait here.
    private var vacated: [DeviceOccupancy.Cell] = []
    /// Cells that were left here and are awaited: all shards are to be told (`notifyVacated`).
    private var left: [DeviceOccupancy.Cell] = []
    /// Devices that became free and whose next push has not been given out.
    private var freed: [UInt64] = []
    private var isServed = false
    /// When the last number of any device was read anew.
    private var lastCheckNanos: UInt64 = 0

    init(sharing occupancy: DeviceOccupancy? = nil, shard: Int = 0) {
        self.occupancy = occupancy
        self.shard = shard
    }

    /// Devices with a push out, or one that waits for a cell.
    var busyCount: Int { queues.count }
    private(set) var waitingCount = 0
    /// Other shards may push the same devices.
    var isShared: Bool { occupancy != nil }

    /// A push of the device is out, here or in another shard, or waits here.
    func isBusy(_ key: Key) -> Bool {
        return queues[key] != nil || (occupancy.map { $0.isTaken($0.cell(of: key)) } ?? false)
    }

    /// A push of the device is out or waits here.
    func isBusyHere(_ key: Key) -> Bool { queues[key] != nil }

    /// Whether the device may show a number that was read after this time: another shard has pushed it since, or a push
    /// before this one was checked since. To be asked by the push whose turn it is.
    func mayShowNumber(_ key: Key, readSince nanos: UInt64) -> Bool {
        if let occupancy, occupancy.wasLeft(occupancy.cell(of: key), byOtherThan: shard, since: nanos) { return true }
        // Mostly nothing was checked lately, and the device is not looked for.
        return lastCheckNanos > nanos && (queues[key]?.checkedNanos ?? 0) > nanos
    }

    /// The push that is out, or about to be, carries a number that was read anew at this time.
    mutating func didCheck(_ key: Key, atNanos nanos: UInt64) {
        lastCheckNanos = nanos
        queues[key]?.checkedNanos = nanos
    }

    /// A push waits here for the device.
    func hasWaiting(_ key: Key) -> Bool {
        waitingCount > 0 && !(queues[key]?.isEmpty ?? true)
    }

    /// A push whose turn has come, and the device that it now occupies.
    struct Turn {
        var item: Item
        fileprivate var device: UInt64
    }

    /// First in, first out; what was given out is let go of in blocks, so that a long queue costs no shifting.
    private struct Queue {
        private var items: [Item?] = []
        private var head: Int32 = 0
        /// Nothing of the device is out here: its next push waits for the device's cell.
        var isBlocked = false
        /// When the number of a push was last read anew since the device is busy; 0: never.
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

    /// True: the device is free and is now taken by this push. False: the push waits behind the one that is out.
    mutating func enter(_ key: Key, _ item: @autoclosure () -> Item) -> Bool {
        // Mostly it is free, so it is taken with one look, and given back where it is not.
        guard var waiting = queues.updateValue(Queue(), forKey: key) else {
            guard let occupancy, !occupancy.take(occupancy.cell(of: key)) else { return true }
            return wait(for: occupancy.cell(of: key), key, item())
        }
        waiting.append(item())
        queues[key] = waiting
        waitingCount += 1
        return false
    }

    private mutating func wait(for cell: DeviceOccupancy.Cell, _ key: UInt64, _ item: Item) -> Bool {
        var waiting = Queue()
        waiting.append(item)
        waiting.isBlocked = true
        queues[key] = waiting
        waitingCount += 1
        blocked[cell, default: []].append(key)
        return false
    }

    /// The push that was out has ended. True: the caller now serves `nextTurn` until there is none.
    ///
    /// False: a loop further up the stack serves it. A push may end within its own turn (expired while it waited), and
    /// so may thousands behind it: each then only notes its device, instead of starting the next from within.
    mutating func leave(_ key: Key) -> Bool { free(key) }

    /// The one whose turn it is has gone meanwhile: the device goes to the next.
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

    /// The next push whose device is free; nil ends the serving.
    mutating func nextTurn() -> Turn? {
        while let device = freed.popLast() {
            guard let index = queues.index(forKey: device), !queues.values[index].isBlocked else { continue }
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

    private mutating func turn(of device: UInt64, at index: Dictionary<UInt64, Queue>.Index) -> Turn? {
        guard let item = queues.values[index].popFirst() else { return nil }
        waitingCount -= 1
        return Turn(item: item, device: device)
    }

    // MARK: Cells shared with other shards

    /// These cells were awaited and are left. True: the caller now serves `nextTurn` until there is none.
    mutating func vacate(_ cells: [DeviceOccupancy.Cell]) -> Bool {
        for cell in cells where blocked[cell] != nil { vacated.append(cell) }
        return !vacated.isEmpty && beginServing()
    }

    /// The oldest device that waits for the cell, if the cell can be taken now; else the cell is marked as awaited again.
    private mutating func nextTurn(in cell: DeviceOccupancy.Cell) -> Turn? {
        while let occupancy, let device = blocked[cell]?.first, occupancy.take(cell) {
            blocked[cell]?.removeFirst()
            if blocked[cell]?.isEmpty ?? true { blocked[cell] = nil }
            if let index = queues.index(forKey: device) {
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

    /// Whether all shards are to be told of cells that were left.
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

    /// The shard ends: what it holds is left to the others, and nothing waits any more.
    mutating func close() {
        for (device, queue) in queues where !queue.isBlocked { leaveCell(of: device) }
        notifyVacated()
        queues = [:]
        blocked = [:]
        vacated = []
        freed = []
        waitingCount = 0
    }
}

/// App, user and device, hashed: the same in all shards of the process, and not to be guessed from outside, since who shares
/// another's key makes him wait. The library seeds its hasher anew in each process.
enum DeviceKey {
    static func make(app: String, uid: String, device: String) -> UInt64 {
        // Of the bytes: the hash of a String would first bring its characters into one form.
        var hasher = Hasher()
        add(app, to: &hasher)
        add(uid, to: &hasher)
        add(device, to: &hasher)
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    private static func add(_ part: String, to hasher: inout Hasher) {
        part.utf8.span.withUnsafeBytes { bytes in
            hasher.combine(bytes.count)
            hasher.combine(bytes: bytes)
        }
    }
}
