// SPDX-License-Identifier: Apache-2.0
import JSON
import PushCore
import Worker

/// A record is an event or is refused for a reason with a place in it, and one reader serves them all.
enum RecordFuzz {
    static func run(_ bytes: UnsafeRawBufferPointer) -> [String] {
        let topic: RecordClass = (bytes.first ?? 0) & 1 == 0 ? .events : .userState
        let record = Array(bytes.dropFirst())
        let reader = EventReader(apps: ["im"], maxBytes: 1 << 20)
        let first = read(reader, record, topic)
        // The parser's buffers hold what was read last; that must not show.
        _ = try? reader.read(Array(record.reversed()), of: topic)
        let second = read(reader, record, topic)
        var complaints = first == second ? [] : ["read again it is \(second), not \(first)"]
        if case .failure(let fault) = first {
            if fault.byte < 0 || fault.byte > record.count { complaints.append("byte \(fault.byte) is not in it") }
            if fault.header.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
                complaints.append("a control in \(fault.header.debugDescription)")
            }
        }
        return complaints
    }

    private static func read(
        _ reader: EventReader, _ record: [UInt8], _ topic: RecordClass
    ) -> Result<String, BadRecord> {
        do throws(BadRecord) {
            return .success("\(try reader.read(record, of: topic))")
        } catch {
            return .failure(error)
        }
    }
}
