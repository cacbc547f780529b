// SPDX-License-Identifier: Apache-2.0
/// Topics with records above their limit lately, and what became of the last one of each.
struct OversizedRecords {
    enum End: Hashable {
        case shortened, deadLetter, cut, givenUp

        var words: StaticString {
            switch self {
            case .shortened: "a result exceeds the topic's max.message.bytes: it is written without its texts"
            case .deadLetter: "a record exceeds the topic's max.message.bytes: it goes to the dead-letter topic"
            case .cut: "a dead letter exceeds the topic's max.message.bytes: it is written without its bytes"
            case .givenUp: "a dead letter exceeds the topic's max.message.bytes: its record is lost"
            }
        }
    }

    /// By topic of the configuration, with the time (monotonic) until which an operator is to see it.
    private var ends: [String: (end: End, untilNanos: UInt64)] = [:]
    private static let shownNanos: UInt64 = 600_000_000_000

    mutating func note(_ end: End, _ topic: String, nowNanos: UInt64) {
        ends[topic] = (end, nowNanos &+ Self.shownNanos)
    }

    func texts(nowNanos: UInt64) -> [String] {
        ends.filter { $0.value.untilNanos > nowNanos }.sorted { $0.key < $1.key }.map {
            "\($0.key): \($0.value.end.words)"
        }
    }
}
