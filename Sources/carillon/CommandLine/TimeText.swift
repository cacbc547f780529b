import FoundationEssentials

/// Unix milliseconds as a date for people.
enum TimeText {
    /// What stands in Redis may be any number; a date has four digits of years.
    private static let dates: ClosedRange<Int64> = -62_135_596_800_000...253_402_300_799_999

    static func iso(_ ms: Int64, milliseconds: Bool = false) -> String {
        guard dates.contains(ms) else { return "\(ms) ms" }
        return Date(timeIntervalSince1970: Double(ms) / 1000).formatted(
            Date.ISO8601FormatStyle(includingFractionalSeconds: milliseconds))
    }
}
