/// A place in a `SlotTable`: finds its work, or nothing once that work is done and the slot has moved on.
struct WorkRef: Hashable {
    /// ≤ 2^24 - 1.
    var slot: Int
    /// Modulo 2^24.
    var generation: UInt32

    /// No slot has it.
    static let none = WorkRef(slot: 0xFF_FFFF, generation: 0xFF_FFFF)
}

/// One device of a recipient in work, or of a badge update.
struct DeviceRef {
    var work: WorkRef
    /// Place among the devices of the recipient or of the badge update, ≤ 254.
    var device: Int
    /// `work` is a `BadgeUpdate`, not a recipient.
    var isBadgeUpdate = false
}
