/// Commands of slots that cannot be sent now, in their order: a cluster is moving the slot, or the node that served it
/// before has not answered all that it was sent.
///
/// Pure. While a slot is held, all its commands wait here, so that none passes an earlier one; and of no slot are commands
/// under way to two nodes at once, so that replies come in the order in which commands ran.
struct HeldSlots {
    private struct Held {
        var queue: [KeptCommand] = []
        /// Nodes that have not answered what they were sent for the slot.
        var fences = 0
        var dueNanos: UInt64 = 0
        /// Why it is held.
        var fault: RedisFault
    }

    private var held: [UInt16: Held] = [:]
    private(set) var count = 0
    private(set) var byteCount = 0

    var isEmpty: Bool { held.isEmpty }

    var slots: [UInt16] { held.keys.sorted() }

    func holds(_ slot: UInt16) -> Bool { held[slot] != nil }

    /// The command waits, and with it those of its slot that are sent later.
    mutating func hold(_ command: KeptCommand, untilNanos: UInt64, because fault: RedisFault) {
        var line = held.removeValue(forKey: command.head.slot) ?? Held(fault: fault)
        line.dueNanos = max(line.dueNanos, untilNanos)
        line.fault = fault
        // Redirected ones come back in their order, before those that came later.
        var place = line.queue.endIndex
        while place > 0, line.queue[place - 1].head.sequence > command.head.sequence { place -= 1 }
        line.queue.insert(command, at: place)
        held[command.head.slot] = line
        count += 1
        byteCount += command.encoded.count
    }

    /// A further command of a slot that is held.
    mutating func append(_ command: KeptCommand) {
        guard let line = held[command.head.slot] else { return }
        hold(command, untilNanos: line.dueNanos, because: line.fault)
    }

    /// The slot's commands wait until `unfence` was called as often.
    mutating func fence(_ slot: UInt16) {
        held[slot, default: Held(fault: RedisFault(.moved))].fences += 1
    }

    mutating func unfence(_ slot: UInt16) {
        guard let line = held[slot], line.fences > 0 else { return }
        held[slot]?.fences -= 1
    }

    /// Slots whose time has come.
    func due(nowNanos: UInt64) -> [UInt16] {
        held.filter { $0.value.fences == 0 && $0.value.dueNanos <= nowNanos }.map(\.key).sorted()
    }

    /// Takes all of a slot's commands out, in their order; the slot is held no more.
    mutating func release(_ slot: UInt16) -> [KeptCommand] {
        guard let line = held.removeValue(forKey: slot) else { return [] }
        count -= line.queue.count
        byteCount -= line.queue.reduce(0) { $0 + $1.encoded.count }
        return line.queue
    }

    /// The slot is held on: nobody takes its commands yet.
    mutating func putOff(_ slot: UInt16, untilNanos: UInt64) { held[slot]?.dueNanos = untilNanos }

    /// Takes out the commands that came before `nanos`, each with why its slot is held.
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
