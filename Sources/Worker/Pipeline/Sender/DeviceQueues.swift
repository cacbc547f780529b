/// One push in flight per device (contract section 5, step 16): two streams that finish in the wrong order would show
/// the older badge.
///
/// Keyed by a hash of the device token: two tokens that share one would only wait for each other. A device that waits
/// for nothing costs one entry while its push is out.
struct DeviceQueues<Item> {
    private var queues: [UInt64: Queue] = [:]
    /// Devices that became free and whose next push has not been given out.
    private var freed: [UInt64] = []
    private var isServed = false

    /// Devices with a push out.
    var busyCount: Int { queues.count }
    private(set) var waitingCount = 0

    /// A push whose turn has come, and the device that it now occupies.
    struct Turn {
        var item: Item
        fileprivate var device: UInt64
    }

    /// First in, first out; what was given out is let go of in blocks, so that a long queue costs no shifting.
    private struct Queue {
        private var items: [Item?] = []
        private var head = 0

        mutating func append(_ item: Item) { items.append(item) }

        mutating func popFirst() -> Item? {
            guard head < items.count else { return nil }
            defer {
                items[head] = nil
                head += 1
                if head >= 64, head * 2 >= items.count {
                    items.removeFirst(head)
                    head = 0
                }
            }
            return items[head]
        }
    }

    /// True: the device is free and is now taken by this push. False: the push waits behind the one that is out.
    mutating func enter(_ token: String, _ item: @autoclosure () -> Item) -> Bool {
        let key = Self.key(of: token)
        // Mostly it is free, so it is taken with one look, and given back where it is not.
        guard var waiting = queues.updateValue(Queue(), forKey: key) else { return true }
        waiting.append(item())
        queues[key] = waiting
        waitingCount += 1
        return false
    }

    /// The push that was out has ended. True: the caller now serves `nextTurn` until there is none.
    ///
    /// False: a loop further up the stack serves it. A push may end within its own turn (expired while it waited), and
    /// so may thousands behind it: each then only notes its device, instead of starting the next from within.
    mutating func leave(_ token: String) -> Bool {
        free(Self.key(of: token))
    }

    /// The one whose turn it is has gone meanwhile: the device goes to the next.
    mutating func pass(_ turn: Turn) {
        _ = free(turn.device)
    }

    private mutating func free(_ device: UInt64) -> Bool {
        freed.append(device)
        defer { isServed = true }
        return !isServed
    }

    /// The next push whose device is free; nil ends the serving.
    mutating func nextTurn() -> Turn? {
        while let device = freed.popLast() {
            guard let index = queues.index(forKey: device) else { continue }
            if let item = queues.values[index].popFirst() {
                waitingCount -= 1
                return Turn(item: item, device: device)
            }
            queues.remove(at: index)
        }
        isServed = false
        return nil
    }

    /// Eight bytes at a time; tokens are long, and may differ in any of them.
    private static func key(of token: String) -> UInt64 {
        var token = token
        return token.withUTF8 { bytes in
            let raw = UnsafeRawBufferPointer(bytes)
            var key = UInt64(raw.count)
            var place = 0
            while place + 8 <= raw.count {
                key = mix(key ^ raw.loadUnaligned(fromByteOffset: place, as: UInt64.self))
                place += 8
            }
            for rest in place..<raw.count { key = mix(key ^ UInt64(raw[rest])) }
            return key
        }
    }

    private static func mix(_ value: UInt64) -> UInt64 {
        let (high, low) = value.multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        return high ^ low &+ value
    }
}
