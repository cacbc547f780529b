// SPDX-License-Identifier: Apache-2.0
extension Observer {
    private static let verdicts = ["a": "accepted", "r": "rejected", "e": "expired", "x": "suppressed", "o": "online"]

    /// Reads the statistics of these hours since 1970, as `docs/contract/statistics.md` names the numbers.
    mutating func readStatistics(apps: [String], hours: ClosedRange<Int64>, _ command: ([String]) -> [UInt8]) {
        var counted: [String: Int64] = [:]
        for app in apps {
            for hour in hours {
                let words = Self.words(command(["HGETALL", "c:t:{n}h\(hour):\(app)"]))
                for index in stride(from: 0, to: words.count - 1, by: 2) {
                    let parts = words[index].split(separator: ":", omittingEmptySubsequences: false)
                    let isBadge = parts.first == "pbadge"
                    let letter =
                        isBadge
                        ? parts.last.map(String.init)
                        : words[index].first == "." ? String(words[index].dropFirst()) : nil
                    guard let letter, let verdict = Self.verdicts[letter], let count = Int64(words[index + 1]) else {
                        continue
                    }
                    counted["\(app) \(verdict)", default: 0] += isBadge ? -count : count
                }
            }
        }
        observed.counted = counted
    }

    /// The bulk strings of an array.
    private static func words(_ reply: [UInt8]) -> [String] {
        var words: [String] = []
        var lines = reply.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).makeIterator()
        while let line = lines.next() {
            guard line.first == UInt8(ascii: "$"), let text = lines.next() else { continue }
            words.append(String(decoding: text.dropLast(), as: UTF8.self))
        }
        return words
    }
}
