// SPDX-License-Identifier: Apache-2.0
import Kafka

/// A record's position in its intake's ledgers.
struct RecordPlace {
    let slot: OffsetLedger.Slot
    let inputClass: InputClass
    /// An earlier owner of the partition counted its outcomes.
    let isCounted: Bool
    /// Names the record in the marks that it makes (`MarkCounts`).
    let name: UInt16

    /// For a record that is parked before its marks are read.
    var parkedFacts: ParkedFacts { isCounted ? [] : .countsSource }

    init(_ slot: OffsetLedger.Slot, _ inputClass: InputClass, name: UInt16 = 0, isCounted: Bool = false) {
        self.slot = slot
        self.inputClass = inputClass
        self.name = name
        self.isCounted = isCounted
    }

    /// The same in every worker.
    static func name(_ inputClass: InputClass, _ partition: Int32, _ offset: Int64) -> UInt16 {
        let place = UInt64(CountedPlace(inputClass, partition).bits)
        let mixed = (UInt64(bitPattern: offset) &+ place &* 0x9E37_79B9_7F4A_7C15) &* 0xD6E8_FEB8_6659_FD93
        return UInt16(truncatingIfNeeded: mixed >> 40)
    }
}
