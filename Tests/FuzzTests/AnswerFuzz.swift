// SPDX-License-Identifier: Apache-2.0
import JSON

@testable import APNs

/// An error answer's body is read as JSON readers read it, whatever its bytes, and never gives a label of its own.
enum AnswerFuzz {
    static func run(_ bytes: UnsafeRawBufferPointer) -> [String] {
        var complaints: [String] = []
        let body = AnswerBody(bytes)
        if body != AnswerBody(bytes.prefix(AnswerBody.bytesMax)) { complaints.append("more than the bound was read") }
        let labels = Set(AnswerTable.rules.map(\.reason)).union(["none", "other"])
        if !labels.contains(body.reason.label) { complaints.append("a label of the peer's making") }
        if body.reason.text.utf8.count > 64 || body.reason.text.utf8.contains(where: { $0 < 0x21 || $0 > 0x7E }) {
            complaints.append("an unclean reason")
        }
        for status in [200, 400, 403, 410, 429, 500, 503, Int(bytes.first ?? 0) * 4] {
            _ = AnswerTable.rule(status: status, reason: body.reason)
        }
        let wait = RetryAfter.seconds(bytes, date: nil, nowMs: 0)
        if wait == 0, bytes.contains(where: { $0 != UInt8(ascii: "0") }) { complaints.append("a wait of no time") }
        if let date = HTTPDate.seconds(bytes), !(-62_200_000_000...253_500_000_000).contains(date) {
            complaints.append("a date outside four digits of years")
        }
        return complaints + compare(body, bytes)
    }

    /// Where a strict reader takes the body and nothing in it is escaped, both say the same.
    private static func compare(_ body: AnswerBody, _ bytes: UnsafeRawBufferPointer) -> [String] {
        guard bytes.count <= AnswerBody.bytesMax, !bytes.contains(UInt8(ascii: "\\")),
            let tree = try? JSONTree(parsing: bytes), case .object = tree
        else { return [] }
        var complaints: [String] = []
        if case .string(let reason)? = tree["reason"], body.reason != APNsReason(bytes: reason.utf8) {
            complaints.append("reason \(body.reason.text), not \(reason)")
        }
        if case .number(let text)? = tree["timestamp"], text.utf8.count <= 18,
            text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), body.time.milliseconds != Int64(text)
        {
            complaints.append("timestamp \(body.time.milliseconds ?? -1), not \(text)")
        }
        return complaints
    }
}
