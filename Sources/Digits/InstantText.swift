// SPDX-License-Identifier: Apache-2.0
/// A time as people write it: `2026-11-22T14:05:00Z`, with an offset or a date alone (UTC), or Unix milliseconds.
public enum InstantText {
    /// `2026-11-22T14:05:00`, UTC.
    public static func dateAndTime(seconds: Int64) -> String {
        let days = seconds.flooringDivision(by: 86_400)
        let inDay = seconds - days * 86_400
        let (year, month, day) = Gregorian.date(daysSince1970: days)
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T"
            + "\(padded(inDay / 3600, 2)):\(padded(inDay / 60 % 60, 2)):\(padded(inDay % 60, 2))"
    }

    /// `14:05:00`, or of another day than now `2026-11-22T14:05:00`, UTC.
    public static func timeOrDate(ms: Int64, nowMs: Int64) -> String {
        let text = dateAndTime(seconds: ms.flooringDivision(by: 1000))
        let dayMs: Int64 = 86_400_000
        return ms.flooringDivision(by: dayMs) == nowMs.flooringDivision(by: dayMs) ? String(text.suffix(8)) : text
    }

    /// `2026-11-22T14:05:00.250Z`; the number itself for a year that has no four digits.
    public static func text(ms: Int64) -> String {
        guard (0...253_402_300_799_999).contains(ms) else { return "\(ms) ms" }
        return "\(dateAndTime(seconds: ms / 1000)).\(padded(ms % 1000, 3))Z"
    }

    /// Decimal digits, with zeros in front up to the width.
    public static func padded(_ value: Int64, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    /// Unix ms; nil if the text is not a time.
    public static func milliseconds(_ text: String) -> Int64? {
        let bytes = Array(text.utf8)
        if !bytes.isEmpty, bytes.count <= 15, bytes.allSatisfy({ (48...57).contains($0) }) { return Int64(text) }
        guard bytes.count >= 10, bytes.count <= 35, bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
            let year = number(bytes[0..<4]), let month = number(bytes[5..<7]), let day = number(bytes[8..<10]),
            (1970...9999).contains(year), (1...12).contains(month),
            (1...Gregorian.days(inMonth: month, of: year)).contains(day)
        else { return nil }
        let dayMs = Gregorian.daysSince1970(year: year, month: month, day: day) * 86_400_000
        if bytes.count == 10 { return dayMs }
        guard bytes[10] == UInt8(ascii: "T") || bytes[10] == UInt8(ascii: " "), let time = time(bytes[11...]) else {
            return nil
        }
        return dayMs + time
    }

    /// `hh:mm[:ss[.fff]][Z|±hh:mm]` as milliseconds of the day, UTC.
    private static func time(_ text: ArraySlice<UInt8>) -> Int64? {
        var text = text
        var offsetMs: Int64 = 0
        if text.last == UInt8(ascii: "Z") || text.last == UInt8(ascii: "z") {
            text = text.dropLast()
        } else if let sign = text.lastIndex(where: { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-") }) {
            let parts = text[(sign + 1)...].split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
            guard parts.count == 2, parts.allSatisfy({ $0.count == 2 }), let hours = number(parts[0]),
                let minutes = number(parts[1]), hours <= 23, minutes <= 59
            else { return nil }
            offsetMs = (hours * 60 + minutes) * 60_000 * (text[sign] == UInt8(ascii: "-") ? -1 : 1)
            text = text[..<sign]
        }
        let parts = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard (2...3).contains(parts.count), parts[0].count == 2, parts[1].count == 2, let hours = number(parts[0]),
            let minutes = number(parts[1]), hours <= 23, minutes <= 59
        else { return nil }
        var ms = (hours * 60 + minutes) * 60_000
        if parts.count == 3 {
            let second = parts[2].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            guard second.count <= 2, second[0].count == 2, let seconds = number(second[0]), seconds <= 60 else {
                return nil
            }
            ms += seconds * 1000
            if second.count == 2 {
                guard (1...9).contains(second[1].count), let fraction = number((second[1] + [48, 48, 48]).prefix(3)),
                    number(second[1]) != nil
                else { return nil }
                ms += fraction
            }
        }
        return ms - offsetMs
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        guard !digits.isEmpty, digits.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return digits.reduce(0) { $0 * 10 + Int64($1 - 48) }
    }
}
