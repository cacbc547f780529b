import Console
import JSON

/// A record's line is one line, and is read as the record that it was written from; a line from anywhere is read or is
/// none.
enum RecordingFuzz {
    /// A byte of choices; a line, or a script that a record is made of.
    static func run(_ bytes: UnsafeRawBufferPointer) -> [String] {
        var script = Script(bytes)
        let choices = script.byte()
        guard choices & 1 != 0 else { return read(script.take(1 << 20)) }
        let key = choices & 2 == 0 ? nil : script.take(Int(script.byte()))
        let time = choices & 4 == 0 ? nil : Int64(script.word()) << 12
        let value = choices & 8 != 0 ? nil : script.take(1 << 20)
        return roundTrip(RecordLine(topic: "im.events", key: key, value: value, timestampMs: time))
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
