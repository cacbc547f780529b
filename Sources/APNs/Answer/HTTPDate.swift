internal import Digits

/// The `Date` of an HTTP answer (RFC 9110 section 5.6.7), in its one form that may be sent: `Sun, 06 Nov 1994 08:49:37 GMT`.
enum HTTPDate {
    private static let months = "JanFebMarAprMayJunJulAugSepOctNovDec"

    /// Unix seconds; nil for anything else.
    static func seconds(_ bytes: some Collection<UInt8>) -> Int64? {
        let text = Array(bytes)
        guard text.count == 29, text[4] == 0x20, text[7] == 0x20, text[11] == 0x20, text[16] == 0x20,
            text[19] == UInt8(ascii: ":"), text[22] == UInt8(ascii: ":"), text[25...].elementsEqual(" GMT".utf8),
            let day = number(text[5..<7]), let month = month(text[8..<11]), let year = number(text[12..<16]),
            let hour = number(text[17..<19]), let minute = number(text[20..<22]), let second = number(text[23..<25]),
            (1...31).contains(day), hour < 24, minute < 60, second < 61
        else { return nil }
        let days = Gregorian.daysSince1970(year: year, month: month, day: day)
        return days * 86_400 + hour * 3600 + minute * 60 + second
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        var value: Int64 = 0
        for digit in digits {
            guard digit >= 0x30, digit <= 0x39 else { return nil }
            value = value * 10 + Int64(digit - 0x30)
        }
        return value
    }

    private static func month(_ name: ArraySlice<UInt8>) -> Int64? {
        let all = Array(months.utf8)
        for month in 0..<12 where all[month * 3..<month * 3 + 3].elementsEqual(name) { return Int64(month + 1) }
        return nil
    }
}
