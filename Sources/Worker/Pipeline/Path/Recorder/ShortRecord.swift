// SPDX-License-Identifier: Apache-2.0
import JSON

/// A result that exceeds its topic's limit, in fewer words (contract section 3).
enum ShortRecord {
    /// Identifiers, with the outcome that they are about.
    private static let identifiers: [StaticString] = [
        "v", "app", "event_id", "msg_id", "uid", "device", "kind", "verdict", "outcome", "pid",
    ]
    /// The rest, without `reason` and what else is a text.
    private static let figures: [StaticString] = [
        "lane", "apns_id", "status", "badge", "attempts", "latency_ms", "at_ms",
    ]

    /// - Returns: the longest form that is shorter; nil if there is none.
    static func shorter(than value: [UInt8]) -> [UInt8]? {
        [identifiers + figures, identifiers].lazy.compactMap { keep($0, of: value) }.first { $0.count < value.count }
    }

    private static func keep(_ names: [StaticString], of value: [UInt8]) -> [UInt8]? {
        // Such a record is rare, so no parser is kept for it.
        let parsed = JSONParser(maxBytes: max(64, value.count)).parse(value) { record in
            var writer = JSONWriter(reservingCapacity: 256)
            writer.beginObject()
            for name in names {
                guard let found = record["\(name)"] else { continue }
                if let number = found.int { writer.member(name, number) }
                writer.member(name, ifPresent: found.string)
            }
            writer.endObject()
            return writer.bytes
        }
        guard case .read(let bytes) = parsed else { return nil }
        return bytes
    }
}
