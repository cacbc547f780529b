// SPDX-License-Identifier: Apache-2.0
import Digits
import Telemetry

/// Unix milliseconds as a date for people.
enum TimeText {
    /// Redis may contain any number, but a date has four-digit years.
    private static let dates: ClosedRange<Int64> = -62_135_596_800_000...253_402_300_799_999

    static func iso(_ ms: Int64, milliseconds: Bool = false) -> String {
        guard dates.contains(ms) else { return "\(ms) ms" }
        let seconds = ms.flooringDivision(by: 1000)
        guard milliseconds else { return Timestamp.text(seconds: seconds) }
        return Timestamp.text(seconds: seconds, nanos: (ms - seconds * 1000) * 1_000_000)
    }
}
