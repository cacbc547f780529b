// SPDX-License-Identifier: Apache-2.0
import Console

/// A duration as typed by the user.
enum TimeSpan {
    /// Seconds of `90`, `90s`, `1.5m` or `2h`; nil if the option is absent.
    static func seconds(_ arguments: Arguments, _ option: String) throws(Arguments.UsageError) -> Double? {
        guard let text = arguments.string(option) else { return nil }
        let unit = ["s": 1.0, "m": 60, "h": 3600].first { text.hasSuffix($0.key) }
        guard let number = Double(text.dropLast(unit == nil ? 0 : 1)), number >= 0, number <= 1e8 else {
            throw Arguments.UsageError(message: "--\(option) needs a time like 90s, 5m or 2h; \"\(text)\" is not one")
        }
        return number * (unit?.value ?? 1)
    }
}
