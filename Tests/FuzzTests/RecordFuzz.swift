// SPDX-License-Identifier: Apache-2.0
import JSON
import PushCore

@testable import Worker

/// A record is an event or is refused for a reason with a place in it, and one reader serves them all. Deferred work, of any form,
/// is written as it was read.
enum RecordFuzz {
    static func run(_ bytes: UnsafeRawBufferPointer) -> [String] {
        if bytes.first == UInt8(ascii: "p") { return parked(UnsafeRawBufferPointer(rebasing: bytes.dropFirst())) }
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

    // MARK: Deferred work

    private static func parked(_ bytes: UnsafeRawBufferPointer) -> [String] {
        guard let form = written(bytes) else { return [] }
        guard let again = form.withUnsafeBytes(written) else { return ["what was written cannot be read"] }
        return again == form ? [] : ["written again it is \(again), not \(form)"]
    }

    /// The record in the present form; nil: it is none, or without recipients.
    private static func written(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        switch Deferred.read(bytes, uids: { _, _ in ["a", "b"] }) {
        case .work(let work): return work.open.isEmpty ? nil : work.bytes()
        case .marks(let marks): return marks.bytes
        case .unknown: return nil
        case .other: break
        }
        if let record = ParkedRecord(earlier: bytes) { return Deferred([record]).bytes() }
        return EarlierOwedClaim.read(bytes).map {
            OwedMarks(app: $0.request.app, conversation: $0.request.subject.conversation, part: nil, claims: [$0]).bytes
        }
    }
}
