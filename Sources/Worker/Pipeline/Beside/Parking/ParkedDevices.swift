// SPDX-License-Identifier: Apache-2.0
/// Devices and users with work that this shard parked recently: later work that was read before Redis had the note is
/// parked too.
final class ParkedDevices {
    private struct Note {
        /// Monotonic.
        var atNanos: UInt64
        /// On the shard's steady clock.
        var dueMs: Int64
        /// The event that was parked last.
        var source: EventSource
        /// Redis refused it, or an earlier one: only this shard knows of the wait.
        var isRefused = false
        /// Events that had returned and were parked again. Others of the device may have been parked since.
        var again: [Again] = []

        /// One event is kept for all of its partition that began together: the earliest.
        mutating func addAgain(begunNanos: UInt64) {
            again.removeAll { !$0.source.isBefore(source) && $0.source.partition == source.partition }
            if again.contains(where: { $0.source.isBefore(source) && $0.atNanos >= begunNanos }) { return }
            again.append(Again(atNanos: atNanos, source: source))
        }
    }

    private struct Again {
        /// Monotonic.
        var atNanos: UInt64
        var source: EventSource
    }

    private struct Waiting {
        /// `RecipientJob.order`.
        var order: UInt64
        var recipient: WorkRef
    }

    private var notes: [UInt64: Note] = [:]
    /// Recipients in memory that wait to be parked, by device, earliest first: each is written after those before it,
    /// and new ones wait behind them.
    private var waiting: [UInt64: [Waiting]] = [:]
    /// Beyond it only Redis knows them.
    private static let capacity = 65_536
    /// No earlier read waits in memory for longer.
    private static let keptNanos: UInt64 = 120_000_000_000

    /// Devices with parked work here that ends with an accepted push to them (`ParkCause.waitsForDevice`).
    private var held: Set<UInt64> = []

    var isEmpty: Bool { notes.isEmpty && waiting.isEmpty }

    func hold(_ key: UInt64) { if held.count < Self.capacity { held.insert(key) } }

    var hasHeld: Bool { !held.isEmpty }

    func isHeld(_ key: UInt64) -> Bool { held.contains(key) }

    /// - Parameter nowMs: on the steady clock. Work that is parked behind the device from now on is due then.
    func release(_ key: UInt64, nowMs: Int64) {
        held.remove(key)
        if let note = notes[key], note.dueMs > nowMs { notes[key]?.dueMs = nowMs }
    }

    /// - Parameters:
    ///   - key: `DeviceKey.make`; with an empty device for the whole user.
    ///   - source: the event whose work is parked.
    ///   - returnedNanos: when it began, if it had returned (monotonic).
    ///   - isRefused: whether Redis refuses the note.
    /// - Returns: when the last of the device's noted work is due.
    @discardableResult
    func note(
        _ key: UInt64, dueMs: Int64, of source: EventSource, returnedNanos: UInt64? = nil, isRefused: Bool = false,
        nowNanos: UInt64
    ) -> Int64 {
        let latest = max(dueMs, notes[key]?.dueMs ?? .min)
        if notes.count < Self.capacity || notes[key] != nil {
            var note = Note(
                atNanos: nowNanos, dueMs: latest, source: source,
                isRefused: isRefused || notes[key]?.isRefused ?? false,
                again: notes[key]?.again ?? [])
            if let returnedNanos { note.addAgain(begunNanos: returnedNanos) }
            notes[key] = note
        }
        return latest
    }

    /// The time on the steady clock at which the device's parked pushes are due; nil if Redis has told of all that was parked before
    /// the recipient was read, and none of an earlier recipient is about to be parked.
    ///
    /// - Parameter mayHoldWork: `RedisWrites.mayHoldWork`: Redis refused notes, and their work may wait for longer than its time.
    func dueMs(_ key: UInt64, before job: RecipientJob, nowMs: Int64, mayHoldWork: Bool) -> Int64? {
        if let note = notes[key], isAhead(note, of: job, mayHoldWork || note.dueMs > nowMs) { return note.dueMs }
        return hasWaiting(key, before: job.order) ? notes[key]?.dueMs ?? 0 : nil
    }

    /// Work of one conversation returns together, so that an earlier event may have been parked again before this one was read. A
    /// later one, or one of another partition, is not ahead: two conversations of a device would wait for each other without end.
    private func isAhead(_ note: Note, of job: RecipientJob, _ mayWait: Bool) -> Bool {
        guard let parked = job.event.parked?.record else {
            return note.atNanos >= job.readNanos || (note.isRefused && mayWait)
        }
        return (note.again + [Again(atNanos: note.atNanos, source: note.source)]).contains {
            $0.atNanos >= job.event.begunNanos && $0.source.isBefore(parked.source)
        }
    }

    // MARK: Those that wait in memory to be parked

    /// The recipient's device waits to be parked until the rest of the recipient has ended.
    func wait(_ key: UInt64, _ recipient: WorkRef, order: UInt64) {
        var place = waiting[key]?.count ?? 0
        while place > 0, let before = waiting[key]?[place - 1], before.order > order { place -= 1 }
        waiting[key, default: []].insert(Waiting(order: order, recipient: recipient), at: place)
    }

    func hasWaiting(_ key: UInt64, before order: UInt64) -> Bool {
        guard let first = waiting[key]?.first else { return false }
        return first.order < order
    }

    /// It waits no more. Returns the recipient that is now first; nil if there is none, or if it was not the first.
    func leave(_ key: UInt64, order: UInt64) -> WorkRef? {
        guard let place = waiting[key]?.firstIndex(where: { $0.order == order }) else { return nil }
        waiting[key]?.remove(at: place)
        guard let first = waiting[key]?.first else {
            waiting[key] = nil
            return nil
        }
        return place == 0 ? first.recipient : nil
    }

    /// Once a second.
    func sweep(nowNanos: UInt64, hasParked: Bool) {
        if !hasParked { held = [] }
        if notes.isEmpty { return }
        notes = notes.filter { nowNanos &- $0.value.atNanos < Self.keptNanos }
    }
}
