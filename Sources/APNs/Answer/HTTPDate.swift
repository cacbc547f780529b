// SPDX-License-Identifier: Apache-2.0
internal import Digits

/// A date of HTTP (RFC 9110 section 5.6.7) in any of its three forms:
/// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`.
enum HTTPDate {
    private static let months = "JanFebMarAprMayJunJulAugSepOctNovDec"
    private static let days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

    /// - Parameter nowSeconds: resolves a year of two digits: a date over 50 years ahead is one of the past.
    /// - Returns: Unix seconds; nil for anything else.
    static func seconds(_ bytes: some Collection<UInt8>, nowSeconds: Int64 = 0) -> Int64? {
        guard bytes.count <= 40 else { return nil }
        let words = bytes.split(separator: 0x20, omittingEmptySubsequences: false).map { Array($0) }
        switch words.count {
        case 6 where isDay(words[0], isShort: true, comma: true) && words[5].elementsEqual("GMT".utf8):
            guard words[1].count == 2, words[3].count == 4, let year = number(words[3][...]) else { return nil }
            return time(year: year, month: words[2], day: words[1], clock: words[4])
        case 4 where isDay(words[0], isShort: false, comma: true) && words[3].elementsEqual("GMT".utf8):
            return shortYear(words[1], clock: words[2], nowSeconds: nowSeconds)
        case 5 where isDay(words[0], isShort: true, comma: false):
            guard words[2].count == 2, words[4].count == 4, let year = number(words[4][...]) else { return nil }
            return time(year: year, month: words[1], day: words[2], clock: words[3])
        // A day of one digit has a second space before it.
        case 6 where isDay(words[0], isShort: true, comma: false) && words[2].isEmpty:
            guard words[3].count == 1, words[5].count == 4, let year = number(words[5][...]) else { return nil }
            return time(year: year, month: words[1], day: words[3], clock: words[4])
        default: return nil
        }
    }

    /// `06-Nov-94`.
    private static func shortYear(_ date: [UInt8], clock: [UInt8], nowSeconds: Int64) -> Int64? {
        let parts = date.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false).map { Array($0) }
        guard parts.count == 3, parts[0].count == 2, parts[2].count == 2, let short = number(parts[2][...]) else {
            return nil
        }
        let thisYear = Gregorian.date(daysSince1970: nowSeconds.flooringDivision(by: 86_400)).year
        var year = thisYear - thisYear % 100 + short
        if year < thisYear - 49 { year += 100 }
        if year > thisYear + 50 { year -= 100 }
        return time(year: year, month: parts[1], day: parts[0], clock: clock)
    }

    private static func time(year: Int64, month name: [UInt8], day: [UInt8], clock: [UInt8]) -> Int64? {
        guard clock.count == 8, clock[2] == UInt8(ascii: ":"), clock[5] == UInt8(ascii: ":"),
            let month = month(name), let day = number(day[...]), day >= 1,
            day <= Gregorian.days(inMonth: month, of: year), let hour = number(clock[0..<2]),
            let minute = number(clock[3..<5]), let second = number(clock[6..<8]), hour < 24, minute < 60, second < 61
        else { return nil }
        let days = Gregorian.daysSince1970(year: year, month: month, day: day)
        return days * 86_400 + hour * 3600 + minute * 60 + second
    }

    /// The weekday is only checked for being one: the date says the same better.
    private static func isDay(_ word: [UInt8], isShort: Bool, comma: Bool) -> Bool {
        guard !comma || word.last == UInt8(ascii: ",") else { return false }
        let name = comma ? word.dropLast() : word[...]
        return days.contains { isShort ? name.elementsEqual($0.utf8.prefix(3)) : name.elementsEqual($0.utf8) }
    }

    /// Callers bound the number of digits.
    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        guard !digits.isEmpty else { return nil }
        var value: Int64 = 0
        for digit in digits {
            guard digit >= 0x30, digit <= 0x39 else { return nil }
            value = value &* 10 &+ Int64(digit &- 0x30)
        }
        return value
    }

    private static func month(_ name: [UInt8]) -> Int64? {
        let all = Array(months.utf8)
        for month in 0..<12 where all[month * 3..<month * 3 + 3].elementsEqual(name) { return Int64(month + 1) }
        return nil
    }
}
