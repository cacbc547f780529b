// SPDX-License-Identifier: Apache-2.0
import CRdkafka
import PushCore

@testable import Kafka
@testable import Worker

/// Headers come back from librdkafka as they were given; a dead letter's are short plain text, whatever its record was.
enum HeaderFuzz {
    /// A byte of choices; a record to be refused, or a script of headers.
    static func run(_ bytes: UnsafeRawBufferPointer) -> [String] {
        let rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
        let choices = bytes.first ?? 0
        switch choices % 3 {
        case 0: return deadLetter(Array(rest), .events)
        case 1: return deadLetter(Array(rest), .userState)
        default:
            var script = Script(rest)
            return roundTrip(headers(&script))
        }
    }

    // MARK: A dead letter

    private static func deadLetter(_ record: [UInt8], _ topic: RecordClass) -> [String] {
        let why: BadRecord
        do throws(BadRecord) {
            _ = try EventReader(apps: ["im"], maxBytes: 1 << 20).read(record, of: topic)
            return []
        } catch {
            why = error
        }
        let headers = DeadLetter.headers(why, topic: "im.events", partition: .max, offset: .max)
        var complaints = roundTrip(headers)
        for header in headers {
            let value = header.value ?? []
            if value.isEmpty || value.count > 512 { complaints.append("\(header.name) of \(value.count) bytes") }
            // An unknown app is named as it is written, its controls escaped.
            if value.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
                complaints.append("\(header.name) is \(String(decoding: value, as: UTF8.self).debugDescription)")
            }
        }
        if headers.map(\.name) != ["carillon-error", "carillon-topic", "carillon-partition", "carillon-offset"] {
            complaints.append("\(headers.map(\.name))")
        }
        let error = String(decoding: headers.first?.value ?? [], as: UTF8.self)
        // The place by path and byte.
        if !error.hasPrefix("bad_event: ") || !error.contains(" at $") || !error.hasSuffix(", byte \(why.byte)") {
            complaints.append("no place in \(error)")
        }
        return complaints
    }

    // MARK: librdkafka's own

    private static func headers(_ script: inout Script) -> [KafkaHeader] {
        var headers: [KafkaHeader] = []
        while !script.isOver, headers.count < 300 {
            let choices = script.byte()
            let name = String(decoding: script.take(Int(choices & 0x1F)).filter { $0 != 0 }, as: UTF8.self)
            let size = Int(script.byte()) * (choices & 0x20 == 0 ? 1 : 200)
            headers.append(KafkaHeader(name: name, value: choices & 0x40 == 0 ? script.take(size) : nil))
        }
        return headers
    }

    private static func roundTrip(_ given: [KafkaHeader]) -> [String] {
        guard let native = KafkaHeader.native(given) else { return ["refused: \(given)"] }
        defer { rd_kafka_headers_destroy(native) }
        var found: [KafkaHeader] = []
        KafkaHeader.forEach(in: native) { name, value in
            found.append(KafkaHeader(name: name, value: value.map { Array($0) }))
        }
        return found == given ? [] : ["\(found), not \(given)"]
    }
}
