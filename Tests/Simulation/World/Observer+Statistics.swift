// SPDX-License-Identifier: Apache-2.0
extension Observer {
    private static let verdicts = ["a": "accepted", "r": "rejected", "e": "expired", "x": "suppressed", "o": "online"]

    /// Reads the statistics of these hours since 1970, as `docs/contract/statistics.md` names the numbers.
    mutating func readStatistics(apps: [String], hours: ClosedRange<Int64>, _ command: ([String]) -> [UInt8]) {
        var counted: [String: Int64] = [:]
        readNumbers(apps, hours, command)
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

    /// The lists of the statistics: by app, list, name and letter.
    private mutating func readNumbers(_ apps: [String], _ hours: ClosedRange<Int64>, _ command: ([String]) -> [UInt8]) {
        for app in apps {
            var names: [String: String] = [:]
            for day in Set([hours.lowerBound / 24, hours.upperBound / 24]) {
                let words = Self.words(command(["HGETALL", "c:t:{n}n\(day):\(app)"]))
                for index in stride(from: 0, to: words.count - 1, by: 2) { names[words[index]] = words[index + 1] }
                addTasks(app, Self.words(command(["HGETALL", "c:t:{n}t\(day):\(app)"])))
            }
            for hour in hours {
                let words = Self.words(command(["HGETALL", "c:t:{n}h\(hour):\(app)"]))
                for index in stride(from: 0, to: words.count - 1, by: 2) {
                    guard let count = Int64(words[index + 1]), let first = words[index].first else { continue }
                    let rest = words[index].dropFirst()
                    let parts = rest.split(separator: ":", maxSplits: 1).map(String.init)
                    switch first {
                    case ".": observed.numbers["\(app) all - \(rest)", default: 0] += count
                    case "r" where parts.count == 2:
                        observed.numbers["\(app) reason \(parts[0]) \(parts[1])", default: 0] += count
                    case "p" where parts.count == 2:
                        observed.numbers["\(app) type \(parts[0]) \(parts[1])", default: 0] += count
                    case "n" where parts.count == 2:
                        observed.numbers["\(app) name \(names[parts[0]] ?? parts[0]) \(parts[1])", default: 0] += count
                    default: break
                    }
                }
            }
        }
    }

    private mutating func addTasks(_ app: String, _ words: [String]) {
        var fields: [String: String] = [:]
        for index in stride(from: 0, to: words.count - 1, by: 2) { fields[words[index]] = words[index + 1] }
        for (field, value) in fields {
            let parts = field.split(separator: ":").map(String.init)
            guard parts.count == 2, parts[1] != "t", let count = Int64(value) else { continue }
            observed.numbers["\(app) task \(fields["\(parts[0]):t"] ?? "") \(parts[1])", default: 0] += count
        }
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
