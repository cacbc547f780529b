// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import Recording

/// A record's line is one line, and is read as the record that it was written from; a line from anywhere is read or is
/// none. Scrubbed, no token is left of it; renamed for a replay, it is still what it was.
enum RecordingFuzz {
    /// A byte of choices; a line, or a script that a record is made of.
    static func run(_ bytes: UnsafeRawBufferPointer) -> [String] {
        var script = Script(bytes)
        let choices = script.byte()
        guard choices & 1 != 0 else { return read(script.take(1 << 20)) }
        let key = choices & 2 == 0 ? nil : script.take(Int(script.byte()))
        let time = choices & 4 == 0 ? nil : Int64(script.word()) << 12
        var headers: [RecordLine.Header] = []
        if choices & 16 != 0 {
            for _ in 0..<Int(script.byte() & 7) {
                let name = String(decoding: script.take(Int(script.byte())), as: UTF8.self)
                let value = script.byte() & 1 == 0 ? nil : script.take(Int(script.byte()))
                headers.append(RecordLine.Header(name: name, value: value))
            }
        }
        let value = choices & 8 != 0 ? nil : script.take(1 << 20)
        let record = RecordLine(topic: "im.events", key: key, value: value, timestampMs: time, headers: headers)
        return roundTrip(record) + scrub(record, ids: choices & 32 != 0) + rename(value ?? [])
    }

    /// A run of so many hexadecimal digits is a token.
    private static func hasToken(_ bytes: [UInt8]) -> Bool {
        bytes.count >= 64 && bytes.allSatisfy { Hex.value(of: $0) != nil }
    }

    private static func scrub(_ record: RecordLine, ids: Bool) -> [String] {
        guard let key = ScrubKey(Array("sixteen bytes or more".utf8)) else { return ["no key"] }
        var scrubber = Scrubber(key: key, scrubsIDs: ids)
        let scrubbed = scrubber.scrub(record)
        var complaints = roundTrip(scrubbed)
        if let own = record.value, hasToken(own), own == scrubbed.value { complaints.append("a token is left") }
        if let own = record.key, hasToken(own), own == scrubbed.key { complaints.append("a key is left") }
        let parser = JSONParser(maxBytes: RecordLine.bytesMax)
        func isJSON(_ bytes: [UInt8]?) -> Bool {
            guard case .read = parser.parse(bytes ?? [], { (_) throws(Never) in }) else { return false }
            return true
        }
        if isJSON(record.value), !isJSON(scrubbed.value) { complaints.append("JSON became none") }
        var again = Scrubber(key: key, scrubsIDs: ids)
        if again.scrub(record) != scrubbed { complaints.append("two fakes of one record") }
        return complaints
    }

    private static func rename(_ value: [UInt8]) -> [String] {
        let fresh = FreshIDs(tag: "fuzz", pass: 3, seqs: .min ... .max, startMs: .max)
        let renamed = ReplayRewriter(shift: TimeShift(byMs: .max), fresh: fresh).apply(to: value)
        guard let before = try? JSONTree(parsing: value, maxBytes: RecordLine.bytesMax), before.members != nil else {
            return renamed == value ? [] : ["what is no object was changed"]
        }
        guard let after = try? JSONTree(parsing: renamed, maxBytes: RecordLine.bytesMax) else {
            return ["no JSON any more"]
        }
        return before.members?.map(\.key) == after.members?.map(\.key) ? [] : ["other fields than before"]
    }

    private static func read(_ line: [UInt8]) -> [String] {
        guard let found = RecordLine(line, JSONParser(maxBytes: RecordLine.bytesMax)) else {
            return RecordLine.value(in: line) == line ? [] : ["no recording, and yet something else"]
        }
        var complaints = RecordLine.value(in: line) == found.value ?? [] ? [] : ["two values of one line"]
        let tree = try? JSONTree(parsing: line, maxBytes: RecordLine.bytesMax)
        if found.value == nil, tree?["value"] != .null { complaints.append("a null record that nobody wrote") }
        if let count = found.value?.count, count > line.count { complaints.append("\(count) bytes of \(line.count)") }
        // A topic is written as it stands in the file.
        var again = found
        again.topic = found.topic ?? ""
        return complaints + roundTrip(again)
    }

    private static func roundTrip(_ record: RecordLine) -> [String] {
        let line = RecordLineWriter().bytes(of: record)
        guard line.last == 0x0A, line.dropLast().allSatisfy({ $0 != 0x0A && $0 != 0x0D }) else {
            return ["not one line"]
        }
        let found = RecordLine(Array(line.dropLast()), JSONParser(maxBytes: RecordLine.bytesMax))
        return found == record ? [] : ["\(String(describing: found)), not \(record)"]
    }
}
