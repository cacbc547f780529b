// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore

/// The ends that count, in the mark of a finished recipient: some fifteen bytes behind the `f`.
///
/// A record that is read again after a crash finds its recipients finished: it counts what their marks say, if it made
/// them itself. A device's report finds here that its push was an accepted alert, and the subject. A first byte
/// with the bits `0x80`, flags and the number of outcomes; two bytes that name the record; two bytes of the hour; four
/// of the name and of the task, where there are such; then four bytes for each outcome.
struct MarkCounts: Equatable {
    struct Outcome: Equatable {
        let kind: CountedOutcome.Kind
        let push: CountedOutcome.PushKind
        let isSent: Bool
        let reason: UInt8
        /// `MarkCounts.short` of the credential's name; 0: none.
        let credential: UInt8
        /// `MarkCounts.short` of the device; 0: none.
        let device: UInt8
        /// `badge: none`: the extension on the device added 1 for this alert.
        let isAddedByClient: Bool
    }

    /// The record that made the mark (`RecordPlace.name`).
    let record: UInt16
    /// Hours since 1970, modulo 1024.
    let hour: UInt16
    let lane: UInt8
    /// 0: none.
    let name: UInt32
    let task: UInt32
    let outcomes: [Outcome]

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
        var (name, task) = (UInt32(0), UInt32(0))
        if first & hasName != 0 {
            guard let hash = rest.number(4) else { return nil }
            name = hash
        }
        if first & hasTask != 0 {
            guard let hash = rest.number(4) else { return nil }
            task = hash
        }
        var outcomes: [Outcome] = []
        for _ in 0..<(first & 0x0F) {
            guard let one = rest.number(4), let outcome = Outcome(one) else { return nil }
            outcomes.append(outcome)
        }
        bytes = rest.bytes
        return MarkCounts(
            record: UInt16(record), hour: UInt16(when & 0x3FF), lane: UInt8(when >> 10 & 7), name: name, task: task,
            outcomes: outcomes)
    }

    /// The outcome, with the short name of the credential in place of its number.
    func counted(_ outcome: Outcome) -> CountedOutcome {
        CountedOutcome(
            hour: Int64(hour), outcome.kind, outcome.push, PushLane(rawValue: lane) ?? .direct, reason: outcome.reason,
            credential: outcome.credential, isSent: outcome.isSent)
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

// MARK: - Writing

extension MarkCounts {
    /// The counts of a journal, as `take` reads them. Without an end that counts there are no bytes.
    ///
    /// - Parameter record: the event's (`RecordPlace.name`).
    static func write(
        _ journal: Journal, record: UInt16, _ subject: CountedSubject, _ push: CountedOutcome.PushKind,
        _ lane: PushLane,
        _ body: (UnsafeRawBufferPointer) -> Void
    ) {
        withUnsafeTemporaryAllocation(byteCount: 13 + 4 * outcomesMax, alignment: 1) { bytes in
            var (count, outcomes) = (1, UInt8(0))
            func put(_ word: UInt32) {
                bytes.storeBytes(of: word.bigEndian, toByteOffset: count, as: UInt32.self)
                count += 4
            }
            journal.forEach { entry in
                if !entry.pointee.traits.contains(.counts) || outcomes == outcomesMax { return }
                if outcomes == 0 {
                    let hour = UInt32(truncatingIfNeeded: entry.pointee.atMs / StatisticsKey.hourMs) & 0x3FF
                    put(UInt32(record) << 16 | hour | UInt32(lane.rawValue) << 10)
                    if subject.name != 0 { put(subject.name) }
                    if subject.task != 0 { put(subject.task) }
                }
                put(word(entry, push))
                outcomes += 1
            }
            if outcomes == 0 { return }
            bytes[0] = tag | (subject.name == 0 ? 0 : hasName) | (subject.task == 0 ? 0 : hasTask) | outcomes
            body(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        }
    }

    private static func word(_ entry: UnsafePointer<Journal.Entry>, _ push: CountedOutcome.PushKind) -> UInt32 {
        let kind = CountedOutcome.Kind(entry.pointee.verdict)?.rawValue ?? 0
        let first =
            kind | push.rawValue << 3 | (entry.pointee.isSent ? 0x40 : 0)
            | (entry.pointee.traits.contains(.isAddedByClient) ? 0x80 : 0)
        let last = entry.pointee.shortDevice
        return UInt32(first) << 24 | UInt32(entry.pointee.countedReason) << 16 | UInt32(entry.pointee.credential) << 8
            | UInt32(last)
    }
}
