// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore

/// The open recipients of a `Deferred`, compactly: the facts that are not in a recipient's mark in Redis.
///
/// Each is an entry of `Parts`. Values of the head (`base`) are left out. Parts with unknown letters are kept and
/// written again.
struct OpenRecipients {
    private(set) var bytes: [UInt8] = []
    private let base: ParkedRecord
    private let places: [UTF8Key: Int]

    /// - Parameters:
    ///   - base: has the fields that the recipients share.
    ///   - places: of the recipients in the event's `to.uids`.
    init(base: ParkedRecord, places: [UTF8Key: Int]) {
        self.base = base
        self.places = places
    }

    mutating func append(_ record: ParkedRecord) {
        var parts = Parts()
        if let uid = record.uid {
            if let place = places[UTF8Key(uid)] {
                parts.add(Letter.place) { $0.number(UInt64(place)) }
            } else {
                parts.add(Letter.uid, uid)
            }
        }
        if record.dueMs != base.dueMs { parts.add(Letter.due) { $0.signed(record.dueMs &- base.dueMs) } }
        let cause = record.laterCause ?? record.cause.rawValue
        if !cause.isSame(as: base.laterCause ?? base.cause.rawValue) { parts.add(Letter.cause, cause) }
        if record.client != base.client { parts.add(Letter.client, record.client ?? "") }
        for device in record.devices { parts.add(Letter.device, device) }
        if let hold = record.holdUntilMs { parts.add(Letter.hold) { $0.signed(hold &- base.dueMs) } }
        if !record.facts.isEmpty { parts.add(Letter.facts) { $0.number(UInt64(record.facts.rawValue)) } }
        for silent in record.silentConnections {
            parts.add(Letter.silent) {
                $0.signed(silent.epoch)
                $0.bytes.append(contentsOf: silent.device.utf8)
            }
        }
        for entry in record.journal.entries { parts.add(Letter.entry) { entry.write(to: &$0) } }
        parts.bytes += record.later
        bytes += parts.entry
    }

    /// - Parameter uids: `to.uids` of the event; called at most once.
    /// - Returns: nil if the bytes are damaged, or name a place that the event does not have.
    static func read(
        _ bytes: Slice<UnsafeRawBufferPointer>, base: ParkedRecord, uids: () -> [String]?
    ) -> [ParkedRecord]? {
        var rest = PartReader(rest: bytes)
        var open: [ParkedRecord] = []
        var named: [String]?
        while !rest.rest.isEmpty {
            guard var parts = rest.entry() else { return nil }
            var record = base
            var earlier = EarlierParts()
            while !parts.rest.isEmpty {
                guard let part = parts.part() else { return nil }
                if part.letter == Letter.place {
                    if named == nil { named = uids() ?? [] }
                    var place = part.reader
                    guard let named, let index = place.number(), named.indices.contains(index) else { return nil }
                    record.uid = named[index]
                } else if !record.take(part, base: base), !earlier.take(part) {
                    record.later += part.whole
                }
            }
            if let journal = earlier.journal(writtenMs: base.writtenMs) { record.journal = journal }
            if record.uid == nil { return nil }
            open.append(record)
        }
        return open
    }
}

extension ParkedRecord {
    /// - Returns: false for a letter of a later version, and for content that no version writes.
    fileprivate mutating func take(_ part: PartReader.Part, base: ParkedRecord) -> Bool {
        var reader = part.reader
        let text = { String(decoding: part.content, as: UTF8.self) }
        switch part.letter {
        case Letter.uid: uid = text()
        case Letter.due:
            guard let delta = reader.signed() else { return false }
            dueMs = base.dueMs &+ delta
        case Letter.cause: take(cause: text())
        case Letter.client: take(client: text())
        case Letter.device: devices.append(text())
        case Letter.hold:
            guard let delta = reader.signed() else { return false }
            holdUntilMs = base.dueMs &+ delta
        case Letter.facts:
            guard let bits = reader.word() else { return false }
            facts = ParkedFacts(rawValue: UInt32(truncatingIfNeeded: bits))
        case Letter.silent:
            guard let epoch = reader.signed() else { return false }
            silentConnections.append(
                SilentConnection(device: String(decoding: reader.rest, as: UTF8.self), epoch: epoch))
        case Letter.entry:
            guard let entry = Journal.Entry(&reader) else { return false }
            journal.append(entry)
        default: return false
        }
        return true
    }
}

/// The letters are a stored format: never change or reuse one. Those of `EarlierParts` are used too.
private enum Letter {
    static let uid = UInt8(ascii: "u")
    /// Place in `to.uids`.
    static let place = UInt8(ascii: "i")
    /// Due time, from the head's.
    static let due = UInt8(ascii: "t")
    static let cause = UInt8(ascii: "c")
    static let client = UInt8(ascii: "k")
    /// A waiting device.
    static let device = UInt8(ascii: "d")
    /// The end of a hold, from the head's due time.
    static let hold = UInt8(ascii: "h")
    static let facts = UInt8(ascii: "f")
    /// A connection without an ack: its epoch, then its device.
    static let silent = UInt8(ascii: "s")
    /// An entry of the journal.
    static let entry = UInt8(ascii: "j")
}
