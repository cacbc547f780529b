// SPDX-License-Identifier: Apache-2.0
/// A reference into a `SlotTable`: finds its work, or nothing once that work has ended and the slot's generation
/// increased.
struct WorkRef: Hashable {
    private let slotBits: UInt32
    /// Modulo 2^24.
    let generation: UInt32

    /// - Parameter slot: ≤ 2^24 - 1.
    init(slot: Int, generation: UInt32) {
        slotBits = UInt32(truncatingIfNeeded: slot)
        self.generation = generation
    }

    var slot: Int { Int(slotBits) }

    /// No slot has it.
    static let none = WorkRef(slot: 0xFF_FFFF, generation: 0xFF_FFFF)
}

/// One device of a recipient, or of a badge update.
struct DeviceRef: Equatable {
    var work: WorkRef
    /// Index among the devices of the recipient or of the badge update, ≤ 254.
    var device: Int
}
