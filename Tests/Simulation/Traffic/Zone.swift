// SPDX-License-Identifier: Apache-2.0
/// Time zones of the world's users.
enum Zone {
    /// Minutes ahead of UTC.
    private static func offset(of zone: String, at ms: Int64) -> Int {
        switch zone {
        case "Europe/Berlin": ms >= Plan.summerMs ? 120 : 60
        case "America/New_York": ms >= 1_805_007_600_000 ? -240 : -300
        case "Asia/Kolkata": 330
        case "UTC": 0
        default: 480
        }
    }

    /// The weekday, Monday as 1, and the minute of the day.
    static func minute(at ms: Int64, in zone: String) -> (weekday: Int, minute: Int) {
        let minutes = Int(ms / 60_000) + offset(of: zone, at: ms)
        // 1970 began on a Thursday.
        return ((minutes / 1440 + 3) % 7 + 1, minutes % 1440)
    }
}
