/// One push in flight per device (contract section 5, step 16): two streams that finish in the wrong order would show
/// the older badge.
///
/// Keyed by device token; a device that waits for nothing costs one entry while its push is out.
struct DeviceLanes<Item> {
    private var lanes: [String: [Item]] = [:]

    /// Devices with a push out.
    var busyCount: Int { lanes.count }
    private(set) var waitingCount = 0

    /// True: the device is free and is now taken by this push. False: the push waits behind the one that is out.
    mutating func enter(_ token: String, _ item: @autoclosure () -> Item) -> Bool {
        guard let index = lanes.index(forKey: token) else {
            lanes[token] = []
            return true
        }
        lanes.values[index].append(item())
        waitingCount += 1
        return false
    }

    /// The push that was out has ended: the next one of this device, which now has the lane, or nil.
    mutating func leave(_ token: String) -> Item? {
        guard let index = lanes.index(forKey: token) else { return nil }
        if lanes.values[index].isEmpty {
            lanes.remove(at: index)
            return nil
        }
        waitingCount -= 1
        return lanes.values[index].removeFirst()
    }
}
