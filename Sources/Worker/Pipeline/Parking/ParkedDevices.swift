/// Devices and users of which this shard has parked something lately: what is in hand behind it, and was read before Redis
/// could say so, is parked as well.
final class ParkedDevices {
    private struct Note {
        /// Monotonic.
        var atNanos: UInt64
        /// Unix ms.
        var dueMs: Int64
    }

    private var notes: [UInt64: Note] = [:]
    /// What is beyond it is told by Redis alone.
    private static let capacity = 65_536
    /// Nothing that was read before waits longer in memory.
    private static let keptNanos: UInt64 = 120_000_000_000

    var isEmpty: Bool { notes.isEmpty }

    /// - Parameter key: `DeviceKey.make`; with an empty device of the whole user.
    func note(_ key: UInt64, dueMs: Int64, nowNanos: UInt64) {
        guard notes.count < Self.capacity || notes[key] != nil else { return }
        notes[key] = Note(atNanos: nowNanos, dueMs: max(dueMs, notes[key]?.dueMs ?? .min))
    }

    /// When what is parked of it is due, Unix ms; nil: nothing was parked since the recipient was read.
    func dueMs(_ key: UInt64, readNanos: UInt64) -> Int64? {
        guard let note = notes[key], note.atNanos >= readNanos else { return nil }
        return note.dueMs
    }

    /// Once a second.
    func sweep(nowNanos: UInt64) {
        if notes.isEmpty { return }
        notes = notes.filter { nowNanos &- $0.value.atNanos < Self.keptNanos }
    }
}
