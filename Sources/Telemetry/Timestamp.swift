// SPDX-License-Identifier: Apache-2.0
internal import Digits

/// RFC 3339 in UTC.
public enum Timestamp {
    /// With milliseconds.
    public static func text(seconds: Int64, nanos: Int64) -> String {
        "\(dateAndTime(seconds)).\(pad(nanos / 1_000_000, 3))Z"
    }

    /// Without a fraction.
    public static func text(seconds: Int64) -> String { "\(dateAndTime(seconds))Z" }

    private static func dateAndTime(_ seconds: Int64) -> String {
        let days = seconds.flooringDivision(by: 86400)
        let inDay = seconds - days * 86400
        let (year, month, day) = Gregorian.date(daysSince1970: days)
        return "\(pad(year, 4))-\(pad(month, 2))-\(pad(day, 2))T"
            + "\(pad(inDay / 3600, 2)):\(pad(inDay / 60 % 60, 2)):\(pad(inDay % 60, 2))"
    }

    private static func pad(_ value: Int64, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
