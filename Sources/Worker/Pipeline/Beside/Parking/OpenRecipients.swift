// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore

/// The open recipients of a `Deferred`, compactly: the facts that are not in a recipient's mark in Redis.
///
/// Each is its length and then parts: a letter, a length, and bytes. Lengths and numbers are LEB128, signed ones in zigzag form.
/// Values of the head (`base`) are left out. Parts with unknown letters are kept and written again.
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
        for device in record.done { parts.add(Letter.done, device) }
        if let hold = record.holdUntilMs { parts.add(Letter.hold) { $0.signed(hold &- base.dueMs) } }
        if !record.facts.isEmpty { parts.add(Letter.facts) { $0.number(UInt64(record.facts.rawValue)) } }
        for silent in record.silentConnections {
            parts.add(Letter.silent) {
                $0.signed(silent.epoch)
                $0.bytes.append(contentsOf: silent.device.utf8)
            }
        }
        if !record.counts.isEmpty { parts.add(Letter.counts) { $0.bytes += record.counts } }
        if !record.trace.isEmpty { parts.add(Letter.trace) { $0.bytes += record.trace } }
        parts.bytes += record.later
        var length = Parts()
        length.number(UInt64(parts.bytes.count))
        bytes += length.bytes
        bytes += parts.bytes
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
            guard let size = rest.number(), let own = rest.take(size) else { return nil }
            var parts = PartReader(rest: own)
            var record = base
            while !parts.rest.isEmpty {
                let start = parts.rest
                guard let letter = parts.byte(), let size = parts.number(), let content = parts.take(size) else {
                    return nil
                }
                if letter == Letter.place {
                    if named == nil { named = uids() ?? [] }
                    var place = PartReader(rest: content)
                    guard let named, let index = place.number(), named.indices.contains(index) else { return nil }
                    record.uid = named[index]
                } else if !record.take(letter, content, base: base) {
                    record.later += Array(start.prefix(start.count - parts.rest.count))
                }
            }
            if record.uid == nil { return nil }
            open.append(record)
        }
        return open
    }

    /// Parts under construction.
    private struct Parts {
        var bytes: [UInt8] = []

        mutating func add(_ letter: UInt8, _ text: String) { add(letter) { $0.bytes.append(contentsOf: text.utf8) } }

        mutating func add(_ letter: UInt8, _ write: (inout Parts) -> Void) {
            var content = Parts()
            write(&content)
            bytes.append(letter)
            number(UInt64(content.bytes.count))
            bytes += content.bytes
        }

        mutating func number(_ value: UInt64) {
            var rest = value
            while rest >= 0x80 {
                bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
                rest >>= 7
            }
            bytes.append(UInt8(rest))
        }

        mutating func signed(_ value: Int64) { number(UInt64(bitPattern: value << 1 ^ value >> 63)) }
    }
}

extension ParkedRecord {
    /// - Returns: false for a letter of a later version, and for content that no version writes.
    fileprivate mutating func take(
        _ letter: UInt8, _ content: Slice<UnsafeRawBufferPointer>, base: ParkedRecord
    ) -> Bool {
        var reader = PartReader(rest: content)
        let text = { String(decoding: content, as: UTF8.self) }
        switch letter {
        case Letter.uid: uid = text()
        case Letter.due:
            guard let delta = reader.signed() else { return false }
            dueMs = base.dueMs &+ delta
        case Letter.cause: take(cause: text())
        case Letter.client: client = content.isEmpty ? nil : text()
        case Letter.device: devices.append(text())
        case Letter.done: done.append(text())
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
        case Letter.counts: counts = Array(content)
        case Letter.trace: trace = Array(content)
        default: return false
        }
        return true
    }
}

/// Reads parts from the front. Outside input: each step is checked.
private struct PartReader {
    var rest: Slice<UnsafeRawBufferPointer>

    mutating func byte() -> UInt8? { rest.popFirst() }

    mutating func word() -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            guard let byte = byte() else { return nil }
            value |= UInt64(byte & 0x7F) &<< min(shift, 63)
            if byte < 0x80 { return value }
        }
        return nil
    }

    mutating func number() -> Int? { word().map { Int(clamping: $0) } }

    mutating func signed() -> Int64? { word().map { Int64(bitPattern: $0 >> 1) ^ -Int64(bitPattern: $0 & 1) } }

    mutating func take(_ count: Int) -> Slice<UnsafeRawBufferPointer>? {
        guard count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }
}

/// The letters are a stored format: never change or reuse one.
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
    /// A device with its final record.
    static let done = UInt8(ascii: "e")
    /// The end of a hold, from the head's due time.
    static let hold = UInt8(ascii: "h")
    static let facts = UInt8(ascii: "f")
    /// A connection without an ack: its epoch, then its device.
    static let silent = UInt8(ascii: "s")
    static let counts = UInt8(ascii: "n")
    static let trace = UInt8(ascii: "r")
}
