// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore

/// A `TraceRecord` in about a hundred bytes: written once per (event, user) for each push.
///
/// It is part of the mark, and the mark's key has kind and id. Version, flags, time, age, facts, `msg_id` and
/// `event_id` (empty if equal to the key's id), then the entries of the journal up to the end. Numbers are LEB128, texts follow
/// their length. Reading checks every step, because Redis may contain another version.
enum TraceBytes {
    static let version: UInt8 = 1

    private enum Flag {
        static let device: UInt8 = 1
        static let pushID: UInt8 = 2
        static let status: UInt8 = 4
        static let badge: UInt8 = 8
        static let attempts: UInt8 = 16
    }

    /// Writes the entries of a journal from its `traceStart` on.
    ///
    /// - Parameters:
    ///   - sentMs: the record's own.
    ///   - id: in the mark's key.
    ///   - facts: of the last round.
    static func write(
        _ journal: Journal, from start: Int, sentMs: Int64, id: String, msgID: String, eventID: String,
        facts: DecisionFacts, _ body: (UnsafeRawBufferPointer) -> Void
    ) {
        let msgID = msgID == id ? "" : msgID
        let eventID = eventID == id ? "" : eventID
        var size = 2 + 5 * Piece.numberBytes + msgID.utf8.count + eventID.utf8.count
        guard journal.entries.indices.contains(start) else { return }
        let (atMs, traits) = (journal.entries[start].atMs, journal.entries[start].traits)
        journal.forEach(from: start) { entry in
            let textBytes = entry.pointee.reason.utf8.count + (entry.pointee.device?.utf8.count ?? 0)
            size += 2 + 16 + 7 * Piece.numberBytes + textBytes
        }
        withUnsafeTemporaryAllocation(byteCount: size, alignment: 1) { room in
            guard let first = room.baseAddress else { return }
            var piece = Piece(end: first)
            piece.byte(version)
            piece.byte(traits.contains(.isResumed) ? 1 : 0)
            piece.number(atMs)
            // A producer's clock may be ahead of ours.
            piece.number(atMs &- sentMs)
            piece.number(Int64(bitPattern: facts.rawValue))
            piece.text(msgID)
            piece.text(eventID)
            journal.forEach(from: start) { entry in
                if entry.pointee.traits.contains(.isTraced) { write(entry, since: atMs, to: &piece) }
            }
            body(UnsafeRawBufferPointer(rebasing: room[..<(piece.end - first)]))
        }
    }

    private static func write(_ entry: UnsafePointer<Journal.Entry>, since baseMs: Int64, to piece: inout Piece) {
        piece.byte(entry.pointee.verdict.letter)
        piece.byte(
            (entry.pointee.device == nil ? 0 : Flag.device) | (entry.pointee.pushID == nil ? 0 : Flag.pushID)
                | (entry.pointee.status == 0 ? 0 : Flag.status) | (entry.pointee.badge == nil ? 0 : Flag.badge)
                | (entry.pointee.attempts == 0 ? 0 : Flag.attempts))
        piece.text(entry.pointee.reason)
        piece.number(entry.pointee.atMs &- baseMs)
        if let device = entry.pointee.device { piece.text(device) }
        if let id = entry.pointee.pushID {
            piece.fixed(id.high)
            piece.fixed(id.low)
        }
        if entry.pointee.status != 0 { piece.number(Int64(entry.pointee.status)) }
        if let badge = entry.pointee.badge { piece.number(badge) }
        if entry.pointee.attempts != 0 {
            piece.number(Int64(entry.pointee.attempts))
            piece.number(entry.pointee.latencyMs)
        }
    }
}

/// Writes values in sequence. Its creator provides enough room.
private struct Piece {
    /// Maximum bytes of a number.
    static let numberBytes = 10

    var end: UnsafeMutableRawPointer

    mutating func byte(_ byte: UInt8) {
        end.storeBytes(of: byte, as: UInt8.self)
        end += 1
    }

    /// Zigzag encoding, seven bits per byte.
    mutating func number(_ value: Int64) {
        var rest = UInt64(bitPattern: value << 1 ^ value >> 63)
        while rest >= 0x80 {
            byte(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        byte(UInt8(rest))
    }

    mutating func text(_ text: String) {
        text.withUTF8Bytes { utf8 in
            number(Int64(utf8.count))
            if let from = utf8.baseAddress { end.copyMemory(from: from, byteCount: utf8.count) }
            end += utf8.count
        }
    }

    mutating func fixed(_ value: UInt64) {
        end.storeBytes(of: value.bigEndian, as: UInt64.self)
        end += 8
    }
}

// MARK: - Reading

extension TraceRecord {
    /// Reads the trace of a mark of that kind and id. Nil for another version or damaged bytes.
    init?(_ bytes: UnsafeRawBufferPointer, kind: PairKind, id: String) {
        var reader = TraceReader(rest: bytes[...])
        guard reader.byte() == TraceBytes.version, let flags = reader.byte(), let atMs = reader.number(),
            let age = reader.number(), let facts = reader.number(),
            let msgID = reader.text(), let eventID = reader.text()
        else { return nil }
        self.init(
            atMs: atMs, sentMs: atMs &- age, kind: kind, msgID: msgID.isEmpty && kind != .liveActivity ? id : msgID,
            eventID: eventID.isEmpty ? id : eventID,
            facts: DecisionFacts(rawValue: UInt64(bitPattern: facts)), isResumed: flags & 1 != 0)
        while !reader.rest.isEmpty {
            guard let device = reader.device(atMs) else { return nil }
            devices.append(device)
        }
    }
}

private struct TraceReader {
    var rest: Slice<UnsafeRawBufferPointer>

    mutating func byte() -> UInt8? { rest.popFirst() }

    mutating func number() -> Int64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while shift < 64 {
            guard let byte = byte() else { return nil }
            value |= UInt64(byte & 0x7F) << shift
            if byte & 0x80 == 0 { return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1) }
            shift += 7
        }
        return nil
    }

    mutating func text() -> String? {
        guard let count = number(), count >= 0, count <= rest.count, count <= InputLimit.name else { return nil }
        defer { rest = rest.dropFirst(Int(count)) }
        return CompactText.text(
            UnsafeRawBufferPointer(rebasing: rest.prefix(Int(count))), atMost: InputLimit.name)
    }

    mutating func fixed() -> UInt64? {
        var value: UInt64 = 0
        for _ in 0..<8 {
            guard let byte = byte() else { return nil }
            value = value << 8 | UInt64(byte)
        }
        return value
    }

    mutating func device(_ baseMs: Int64) -> TraceRecord.Device? {
        guard let letter = byte(), let verdict = Verdict(letter: letter), let flags = byte(), let reason = text(),
            let delta = number()
        else { return nil }
        var device = TraceRecord.Device(verdict: verdict, reason: reason, atMs: baseMs &+ delta)
        if flags & 1 != 0 {
            guard let name = text() else { return nil }
            device.device = name
        }
        if flags & 2 != 0 {
            guard let high = fixed(), let low = fixed() else { return nil }
            device.pushID = PushID(high: high, low: low)
        }
        if flags & 4 != 0 {
            guard let status = number() else { return nil }
            device.status = Int(truncatingIfNeeded: status)
        }
        if flags & 8 != 0 {
            guard let badge = number() else { return nil }
            device.badge = badge
        }
        if flags & 16 != 0 {
            guard let attempts = number(), let latency = number() else { return nil }
            device.attempts = Int(truncatingIfNeeded: attempts)
            device.latencyMs = latency
        }
        return device
    }
}
