// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore
import Redis

/// The outcomes of a finished recipient in its mark, some fifteen bytes behind the `f`.
///
/// A record that is read again after a crash finds its recipients finished: it counts what their marks say, if it made
/// them itself. A device's report finds here that its push was an accepted alert, and the subject. A first byte
/// with the bits `0x80`, flags and the number of outcomes; two bytes that name the record; two bytes of the hour; four
/// of the name and of the task, where there are such; then four bytes for each outcome.
struct MarkCounts: Equatable {
    struct Outcome: Equatable {
        var kind: CountedOutcome.Kind
        var push: CountedOutcome.PushKind
        var isSent: Bool
        var reason: UInt8
        /// `MarkCounts.short` of the credential's name; 0: none.
        var credential: UInt8
        /// `MarkCounts.short` of the device; 0: none.
        var device: UInt8
        /// `badge: none`: the extension on the device added 1 for this alert.
        var isAddedByClient = false
    }

    /// The record that made the mark (`RecordPlace.name`).
    var record: UInt16
    /// Hours since 1970, modulo 1024.
    var hour: UInt16
    var lane: UInt8
    /// 0: none.
    var name: UInt32
    var task: UInt32
    var outcomes: [Outcome] = []

    static let outcomesMax = 15
    private static let tag: UInt8 = 0x80
    private static let hasName: UInt8 = 0x40
    private static let hasTask: UInt8 = 0x20

    /// A byte for a text, never 0.
    static func short(_ text: String) -> UInt8 {
        let hash = CountedSubject.hash(text)
        return UInt8(truncatingIfNeeded: hash ^ hash >> 16 ^ hash >> 8) | 1
    }

    /// Takes the counts from the bytes of a mark behind the state.
    ///
    /// - Returns: nil, and leaves the bytes, if there are no counts.
    static func take(_ bytes: inout Slice<UnsafeRawBufferPointer>) -> MarkCounts? {
        guard let first = bytes.first, first & tag != 0 else { return nil }
        var rest = Reader(bytes: bytes.dropFirst())
        guard let record = rest.number(2), let when = rest.number(2) else { return nil }
        var counts = MarkCounts(
            record: UInt16(record), hour: UInt16(when & 0x3FF), lane: UInt8(when >> 10 & 7), name: 0, task: 0)
        if first & hasName != 0 {
            guard let name = rest.number(4) else { return nil }
            counts.name = name
        }
        if first & hasTask != 0 {
            guard let task = rest.number(4) else { return nil }
            counts.task = task
        }
        for _ in 0..<(first & 0x0F) {
            guard let one = rest.number(4), let outcome = Outcome(one) else { return nil }
            counts.outcomes.append(outcome)
        }
        bytes = rest.bytes
        return counts
    }

    func counted(_ outcome: Outcome) -> CountedOutcome {
        CountedOutcome(
            hour: Int64(hour), outcome.kind, outcome.push, PushLane(rawValue: lane) ?? .direct, reason: outcome.reason,
            isSent: outcome.isSent)
    }

    private struct Reader {
        var bytes: Slice<UnsafeRawBufferPointer>

        mutating func number(_ count: Int) -> UInt32? {
            guard bytes.count >= count else { return nil }
            var value: UInt32 = 0
            for _ in 0..<count { value = value << 8 | UInt32(bytes.removeFirst()) }
            return value
        }
    }
}

extension MarkCounts.Outcome {
    fileprivate init?(_ word: UInt32) {
        let first = UInt8(word >> 24)
        guard let kind = CountedOutcome.Kind(rawValue: first & 7),
            let push = CountedOutcome.PushKind(rawValue: first >> 3 & 7)
        else { return nil }
        self.init(
            kind: kind, push: push, isSent: first & 0x40 != 0, reason: UInt8(word >> 16 & 0xFF),
            credential: UInt8(word >> 8 & 0xFF), device: UInt8(word & 0xFF), isAddedByClient: first & 0x80 != 0)
    }
}

/// The outcomes of a recipient, for its mark. Usually one, which needs no memory of its own.
struct RecipientCounts {
    /// The bits of an outcome, with a credential and a device in place of its number; 0: none.
    private var first: UInt64 = 0
    private var others: [UInt64] = []

    private static let devicePlace: UInt64 = 40
    /// In the mark of another try only.
    private static let isEarlier: UInt64 = 1 << 48
    private static let isAddedByClient: UInt64 = 1 << 49

    init() {}

    /// Those that a mark contains.
    init(_ mark: MarkCounts) {
        for outcome in mark.outcomes {
            add(
                mark.counted(outcome), credential: outcome.credential, device: outcome.device,
                isAddedByClient: outcome.isAddedByClient)
        }
    }

    /// - Parameters:
    ///   - credential: `MarkCounts.short` of its name; 0: none.
    ///   - device: the same of the device.
    ///   - isAddedByClient: see `MarkCounts.Outcome`.
    mutating func add(_ outcome: CountedOutcome, credential: UInt8, device: UInt8, isAddedByClient: Bool = false) {
        let entry = outcome.with(credential: credential).bits | UInt64(device) << Self.devicePlace
        add(isAddedByClient ? entry | Self.isAddedByClient : entry)
    }

    /// The mark must say on which device the extension added 1.
    var hasAddedByClient: Bool {
        first & Self.isAddedByClient != 0 || others.contains { $0 & Self.isAddedByClient != 0 }
    }

    private mutating func add(_ entry: UInt64) {
        if first == 0 {
            first = entry
        } else if others.count < MarkCounts.outcomesMax - 1 {
            others.append(entry)
        }
    }

    private static func outcome(_ entry: UInt64) -> CountedOutcome {
        CountedOutcome(bits: entry & ~(0x3FF << devicePlace))
    }

    private static func device(_ entry: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: entry >> devicePlace) }

    private var entries: [UInt64] { first == 0 ? [] : [first] + others }

    /// Each with `MarkCounts.short` of its credential in place of the number.
    func forEach(_ body: (CountedOutcome) -> Void) {
        for entry in entries { body(Self.outcome(entry)) }
    }

    // MARK: The mark of another try

    /// Keeps the outcomes of this mark, in place of those of a mark that was read before.
    mutating func takeEarlier(_ mark: MarkCounts?) {
        let own = entries.filter { $0 & Self.isEarlier == 0 }
        self = RecipientCounts()
        for entry in own { add(entry) }
        guard let mark else { return }
        for outcome in mark.outcomes {
            let counted = mark.counted(outcome).with(credential: outcome.credential)
            add(
                counted.bits | UInt64(outcome.device) << Self.devicePlace | Self.isEarlier
                    | (outcome.isAddedByClient ? Self.isAddedByClient : 0))
        }
    }

    /// The outcomes of the mark, besides one for each outcome of the same device here.
    ///
    /// - Parameter open: devices that will have an outcome here.
    func forEachEarlier(besides open: some Sequence<UInt8>, _ body: (CountedOutcome) -> Void) {
        var here = Array(open)
        for entry in entries where entry & Self.isEarlier == 0 { here.append(Self.device(entry)) }
        for entry in entries where entry & Self.isEarlier != 0 {
            if let index = here.firstIndex(of: Self.device(entry)) {
                here.remove(at: index)
            } else {
                body(Self.outcome(entry))
            }
        }
    }

    private static func word(_ entry: UInt64) -> UInt32 {
        let outcome = CountedOutcome(bits: entry)
        let first =
            outcome.kind.rawValue | outcome.push.rawValue << 3 | (outcome.isSent ? 0x40 : 0)
            | (entry & isAddedByClient != 0 ? 0x80 : 0)
        let last = UInt8(truncatingIfNeeded: entry >> devicePlace)
        return UInt32(first) << 24 | UInt32(outcome.reason) << 16 | UInt32(outcome.credential) << 8 | UInt32(last)
    }

    /// As the mark has them (`MarkCounts`). Without outcomes there are no bytes.
    func withBytes(record: UInt16, _ subject: CountedSubject, _ body: (UnsafeRawBufferPointer) -> Void) {
        if first == 0 { return }
        withUnsafeTemporaryAllocation(byteCount: 13 + 4 * MarkCounts.outcomesMax, alignment: 1) { bytes in
            var count = 1
            func put(_ word: UInt32) {
                bytes.storeBytes(of: word.bigEndian, toByteOffset: count, as: UInt32.self)
                count += 4
            }
            bytes[0] =
                0x80 | (subject.name == 0 ? 0 : 0x40) | (subject.task == 0 ? 0 : 0x20) | UInt8(1 + others.count)
            let when = UInt32(first & 0x3FF) | UInt32(CountedOutcome(bits: first).lane.rawValue) << 10
            put(UInt32(record) << 16 | when)
            if subject.name != 0 { put(subject.name) }
            if subject.task != 0 { put(subject.task) }
            put(Self.word(first))
            for other in others { put(Self.word(other)) }
            body(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        }
    }
}

/// The outcomes of a recipient, as its mark is to have them.
struct MarkNote {
    let counts: RecipientCounts
    let record: UInt16
    let subject: CountedSubject

    func write(to command: inout RedisCommand) {
        counts.withBytes(record: record, subject) { command.part($0) }
    }
}
