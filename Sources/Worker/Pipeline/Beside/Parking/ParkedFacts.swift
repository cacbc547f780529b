// SPDX-License-Identifier: Apache-2.0
/// Facts of a recipient that its record in `carillon.parked` keeps, in the record's member `flags`.
///
/// The bits are a stored format, and workers of other versions read it: never change or reuse one.
struct ParkedFacts: OptionSet, Sendable, Equatable {
    let rawValue: UInt32

    static let recordedWithoutDevice = ParkedFacts(rawValue: 1 << 2)
    static let accepted = ParkedFacts(rawValue: 1 << 9)
    static let failed = ParkedFacts(rawValue: 1 << 10)
    static let offeredSMS = ParkedFacts(rawValue: 1 << 11)
    /// The record replaces a mark that Redis refused. The reader claims again.
    static let owesClaim = ParkedFacts(rawValue: 1 << 12)
    static let clearsBadge = ParkedFacts(rawValue: 1 << 16)
    static let reached = ParkedFacts(rawValue: 1 << 22)
    /// It was parked before its marks were read: what earlier tries of its source record finished counts with this record.
    static let countsSource = ParkedFacts(rawValue: 1 << 23)
    static let owesCount = ParkedFacts(rawValue: 1 << 31)
    /// Facts that no push changes.
    static let owed: ParkedFacts = [.owesClaim, .owesCount, .countsSource]

    private static let flags: [(fact: ParkedFacts, flag: RecipientJob.Flags)] = [
        (.recordedWithoutDevice, .recordedWithoutDevice), (.accepted, .accepted), (.failed, .failed),
        (.offeredSMS, .offeredSMS), (.clearsBadge, .clearsBadge), (.reached, .reached),
    ]

    init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    init(of flags: RecipientJob.Flags, _ openMark: RecipientJob.OpenMark) {
        self = Self.flags.reduce(into: []) { if flags.contains($1.flag) { $0.insert($1.fact) } }
        if case .owed(let counts) = openMark { formUnion(counts ? [.owesClaim, .owesCount] : .owesClaim) }
    }

    /// The flags of the recipient that continues from the record.
    var flags: RecipientJob.Flags {
        Self.flags.reduce(into: []) { if contains($1.fact) { $0.insert($1.flag) } }
    }

    /// The mark of the recipient that continues from the record.
    var openMark: RecipientJob.OpenMark {
        contains(.owesClaim) ? .owed(counts: contains(.owesCount)) : .mayExist
    }
}
