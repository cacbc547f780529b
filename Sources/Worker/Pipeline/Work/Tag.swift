// SPDX-License-Identifier: Apache-2.0
/// The 64 bits that accompany a Redis command, a push or a Kafka record and return with its answer.
///
/// A tag has a slot and the slot's generation, so a late answer finds a slot with another generation and is ignored.
/// `question` and `index` identify the query.
struct Tag: Equatable {
    var ref: WorkRef
    var question: Question
    /// A device, token or step of the slot, ≤ 255.
    var index: UInt8

    init(_ ref: WorkRef, _ question: Question, index: Int = 0) {
        self.ref = ref
        self.question = question
        self.index = UInt8(truncatingIfNeeded: index)
    }

    /// - Returns: nil for bits that no tag has.
    init?(_ bits: UInt64) {
        guard let question = Question(rawValue: UInt8(truncatingIfNeeded: bits >> 8)) else { return nil }
        ref = WorkRef(slot: Int(bits >> 40), generation: UInt32(truncatingIfNeeded: bits >> 16) & 0xFF_FFFF)
        self.question = question
        index = UInt8(truncatingIfNeeded: bits)
    }

    var bits: UInt64 {
        UInt64(ref.slot) << 40 | UInt64(ref.generation & 0xFF_FFFF) << 16 | UInt64(question.rawValue) << 8
            | UInt64(index)
    }

    /// The device of a push.
    var device: DeviceRef { DeviceRef(work: ref, device: Int(index)) }

    /// For commands without a slot and with answers that change nothing.
    static var noteBits: UInt64 { Tag(.none, .note).bits }
}
