/// One push in flight per device (contract section 5, step 16): two streams that finish in the wrong order would show
/// the older badge.
///
/// Keyed by a hash of the device token: two tokens that share one would only wait for each other. A device that waits
/// for nothing costs one entry while its push is out.
struct DeviceLanes<Item> {
    private var lanes: [UInt64: [Item]] = [:]

    /// Devices with a push out.
    var busyCount: Int { lanes.count }
    private(set) var waitingCount = 0

    /// True: the device is free and is now taken by this push. False: the push waits behind the one that is out.
    mutating func enter(_ token: String, _ item: @autoclosure () -> Item) -> Bool {
        let key = Self.key(of: token)
        guard let index = lanes.index(forKey: key) else {
            lanes[key] = []
            return true
        }
        lanes.values[index].append(item())
        waitingCount += 1
        return false
    }

    /// The push that was out has ended: the next one of this device, which now has the lane, or nil.
    mutating func leave(_ token: String) -> Item? {
        guard let index = lanes.index(forKey: Self.key(of: token)) else { return nil }
        if lanes.values[index].isEmpty {
            lanes.remove(at: index)
            return nil
        }
        waitingCount -= 1
        return lanes.values[index].removeFirst()
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
