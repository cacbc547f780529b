// SPDX-License-Identifier: Apache-2.0
/// Commands of slots that cannot be sent now, in order: the cluster is moving the slot, or the node that served it
/// before has open commands.
///
/// Pure. While a slot is held, all its commands wait here, so that none overtakes an earlier one. A slot never has open
/// commands at two nodes, so replies come in the order in which commands ran.
struct HeldSlots {
    private struct Held {
        var queue: [KeptCommand] = []
        /// Number of nodes with open commands for the slot.
        var fences = 0
        var dueNanos: UInt64 = 0
        /// The reason for holding it.
        var fault: RedisFault
    }

    private var held: [UInt16: Held] = [:]
    private(set) var count = 0
    private(set) var byteCount = 0

    var isEmpty: Bool { held.isEmpty }

    var slots: [UInt16] { held.keys.sorted() }

    func holds(_ slot: UInt16) -> Bool { held[slot] != nil }

    /// Makes the command wait, and with it all later commands of its slot.
    mutating func hold(_ command: KeptCommand, untilNanos: UInt64, because fault: RedisFault) {
        var line = held.removeValue(forKey: command.head.slot) ?? Held(fault: fault)
        line.dueNanos = max(line.dueNanos, untilNanos)
        line.fault = fault
        // Redirected commands return in their order, before later ones.
        var place = line.queue.endIndex
        while place > 0, line.queue[place - 1].head.sequence > command.head.sequence { place -= 1 }
        line.queue.insert(command, at: place)
        held[command.head.slot] = line
        count += 1
        byteCount += command.encoded.count
    }

    /// Adds another command of a held slot.
    mutating func append(_ command: KeptCommand) {
        guard let line = held[command.head.slot] else { return }
        hold(command, untilNanos: line.dueNanos, because: line.fault)
    }

    /// The slot's commands wait until `unfence` was called as many times.
    mutating func fence(_ slot: UInt16) {
        held[slot, default: Held(fault: RedisFault(.moved))].fences += 1
    }

    mutating func unfence(_ slot: UInt16) {
        guard let line = held[slot], line.fences > 0 else { return }
        held[slot]?.fences -= 1
    }

    /// Slots with an expired delay.
    func due(nowNanos: UInt64) -> [UInt16] {
        held.filter { $0.value.fences == 0 && $0.value.dueNanos <= nowNanos }.map(\.key).sorted()
    }

    /// Removes all of a slot's commands in order. The slot is no longer held.
    mutating func release(_ slot: UInt16) -> [KeptCommand] {
        guard let line = held.removeValue(forKey: slot) else { return [] }
        count -= line.queue.count
        byteCount -= line.queue.reduce(0) { $0 + $1.encoded.count }
        return line.queue
    }

    /// Extends the hold, because no node accepts its commands yet.
    mutating func putOff(_ slot: UInt16, untilNanos: UInt64) { held[slot]?.dueNanos = untilNanos }

    /// Removes the commands that started before `nanos`, each with its slot's reason.
    mutating func takeExpired(startedBefore nanos: UInt64) -> [(command: KeptCommand, fault: RedisFault)] {
        var expired: [(command: KeptCommand, fault: RedisFault)] = []
        for (slot, line) in held where line.queue.contains(where: { $0.head.startNanos < nanos }) {
            for command in line.queue where command.head.startNanos < nanos {
                expired.append((command, line.fault))
                count -= 1
                byteCount -= command.encoded.count
            }
            held[slot]?.queue.removeAll { $0.head.startNanos < nanos }
        }
        return expired.sorted { $0.command.head.sequence < $1.command.head.sequence }
    }
}
