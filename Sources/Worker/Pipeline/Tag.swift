/// The 64 bits that travel with a Redis command, a push or a Kafka record and come back with its answer.
///
/// A tag names a slot and the slot's generation, so an answer that comes late finds a slot that has moved on and is
/// ignored; `stage` and `index` tell what the answer is about.
struct Tag: Equatable {
    /// What was asked; each has its own reading of `index`.
    enum Stage: UInt8 {
        case presence, user, conversation, group, activity, mark
        case lease, claim, owner, finish, acks, members, change
        /// The claims of several recipients, and whose their tokens are.
        case claims, owners
        /// The collapse id of a recall's target.
        case original
        /// A side note whose answer changes nothing here.
        case note
        case push
        case record, eventRecord, delivery, deadLetter
        /// A last look for one device whose push had to wait: the claim again, and whose the token is.
        case look, lookOwner, lookAcks
        /// What quiet hours held back, and the digest of it.
        case heldBack, due, digest
        /// The claim again, of one whose burst's window is over.
        case burst
        /// A lowered badge that is told: whom, then per device the number and whose the token is, and what came of it.
        case clearUser, clearDevices
        case clearBase, clearSize, clearOwner
        case clearPush, clearRecord
    }

    /// ≤ 2^24 - 1.
    var slot: Int
    /// Modulo 2^24.
    var generation: UInt32
    var stage: Stage
    /// A device, token or step of the slot, ≤ 255.
    var index: UInt8

    init(slot: Int, generation: UInt32, stage: Stage, index: UInt8 = 0) {
        self.slot = slot
        self.generation = generation & 0xFF_FFFF
        self.stage = stage
        self.index = index
    }

    /// Nil for bits that no tag has.
    init?(_ bits: UInt64) {
        guard let stage = Stage(rawValue: UInt8(truncatingIfNeeded: bits >> 8)) else { return nil }
        self.init(
            slot: Int(bits >> 40), generation: UInt32(truncatingIfNeeded: bits >> 16), stage: stage,
            index: UInt8(truncatingIfNeeded: bits))
    }

    var ref: JobRef { JobRef(slot: slot, generation: generation) }

    var bits: UInt64 {
        UInt64(slot) << 40 | UInt64(generation) << 16 | UInt64(stage.rawValue) << 8 | UInt64(index)
    }
}
