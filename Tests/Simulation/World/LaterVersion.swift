// SPDX-License-Identifier: Apache-2.0
import EventLoop
import KafkaModel
import RedisModel

/// A worker of a later version, as the others see it: in the records of `carillon.parked` and `carillon.chunks` it writes parts that this
/// version does not know, and reads them.
final class LaterVersion: RecordTranslation {
    private var random: SmallRandom

    private static let unknown = ",\"zz\":[[{\"a\":[null,1.5]}]]}"
    private static let withheld = ",\"!zz\":1"
    private static let cause = "later_"

    init(seed: UInt64) { random = SmallRandom(seed: seed) }

    func written(_ value: [UInt8], to topic: String) -> [UInt8] {
        guard topic == "carillon.parked" || topic == "carillon.chunks", var parts = Parts(value) else { return value }
        if topic == "carillon.parked" {
            parts.extendRecipients()
            if random.next(in: 0...3) == 0 { parts.head.replace("\"cause\":\"", with: "\"cause\":\"\(Self.cause)") }
            switch random.next(in: 0...99) {
            case 0: parts.head.replace("\"case\":\"work\"", with: "\"case\":\"later\"")
            case 1: parts.head.replace("}", with: Self.withheld + "}", last: true)
            default: break
            }
        }
        parts.head.replace("}", with: Self.unknown, last: true)
        return parts.bytes
    }

    func read(_ value: [UInt8], of topic: String) -> [UInt8] {
        guard topic == "carillon.parked", var parts = Parts(value) else { return value }
        parts.head.replace("\"case\":\"later\"", with: "\"case\":\"work\"")
        parts.head.replace(Self.withheld, with: "")
        parts.head.replace("\"cause\":\"\(Self.cause)", with: "\"cause\":\"")
        return parts.bytes
    }

    /// The line of JSON, and what follows it.
    private struct Parts {
        var head: [UInt8]
        private var rest: ArraySlice<UInt8>

        init?(_ value: [UInt8]) {
            guard let end = value.firstIndex(of: UInt8(ascii: "\n")), value.first == UInt8(ascii: "{") else {
                return nil
            }
            head = Array(value[..<end])
            rest = value[(end + 1)...]
        }

        var bytes: [UInt8] { head + [UInt8(ascii: "\n")] + rest }

        /// Each recipient gets parts with letters that nobody knows.
        mutating func extendRecipients() {
            if head.contains("\"case\":\"marks\"") {
                rest = Self.extended(rest)[...]
            } else if let place = head.firstRange(of: Array("\"open\":".utf8)) {
                let digits = head[place.upperBound...].prefix { (48...57).contains($0) }
                guard let count = Int(String(decoding: digits, as: UTF8.self)) else { return }
                let entries = Self.extended(rest.prefix(count))
                rest = (entries + rest.dropFirst(count))[...]
                head.replaceSubrange(digits.startIndex..<digits.endIndex, with: Array("\(entries.count)".utf8))
            }
        }

        private static func extended(_ entries: ArraySlice<UInt8>) -> [UInt8] {
            var (rest, result) = (entries, [UInt8]())
            while let size = ParkedMembers.number(&rest) {
                let entry = rest.prefix(size) + [UInt8(ascii: "z"), 3, 1, 2, 3, UInt8(ascii: "Y"), 0]
                rest = rest.dropFirst(size)
                result += number(entry.count) + entry
            }
            return result
        }

        private static func number(_ value: Int) -> [UInt8] {
            var (rest, bytes) = (value, [UInt8]())
            while rest >= 0x80 {
                bytes.append(UInt8(rest & 0x7F) | 0x80)
                rest >>= 7
            }
            return bytes + [UInt8(rest)]
        }
    }

    // MARK: - Redis

    /// Adds a note and fields that nobody knows to keys of users: to unfinished marks, and to the hashes of users and servers.
    static func addToKeys(_ names: [String], _ command: ([String]) -> [UInt8], random: inout SmallRandom) {
        for name in names.shuffled(using: &random).prefix(20) {
            if name.hasPrefix("c:d") {
                let state = command(["GETRANGE", name, "0", "0"])
                if state.suffix(3).first.map({ $0 == UInt8(ascii: "c") || $0 == UInt8(ascii: "o") }) ?? false {
                    _ = command(["APPEND", name, "w3:abcv0:"])
                }
            } else if name.hasPrefix("c:u:") || name.hasPrefix("c:s:") || name.hasPrefix("c:w:{h") {
                _ = command(["HSET", name, "~later", "[1]"])
            }
        }
    }
}

extension [UInt8] {
    fileprivate func contains(_ text: String) -> Bool { firstRange(of: Array(text.utf8)) != nil }

    /// - Parameter last: the last place in place of the first.
    fileprivate mutating func replace(_ text: String, with other: String, last: Bool = false) {
        let ranges = ranges(of: Array(text.utf8))
        if let range = last ? ranges.last : ranges.first { replaceSubrange(range, with: Array(other.utf8)) }
    }
}
