// SPDX-License-Identifier: Apache-2.0
/// Durations for people, with two digits and a unit.
public enum AgeText {
    /// `850 ms`, `12 s`, `4 min`, `3 h`, `9 d`. A negative duration is `0 ms`.
    public static func short(_ ms: Int64) -> String {
        let ms = max(0, ms)
        switch ms {
        case ..<1_000: return "\(ms) ms"
        case ..<120_000: return "\(ms / 1_000) s"
        case ..<7_200_000: return "\(ms / 60_000) min"
        case ..<172_800_000: return "\(ms / 3_600_000) h"
        default: return "\(ms / 86_400_000) d"
        }
    }
}
