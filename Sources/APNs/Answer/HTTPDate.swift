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
        return days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second
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

    /// Days since 1970 of a date in the Gregorian calendar, by years that begin in March.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted / 400
        let ofEra = shifted - era * 400
        let ofYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }
}
