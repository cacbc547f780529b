// SPDX-License-Identifier: Apache-2.0
import Digits

/// Figures for people, with few digits.
public enum FigureText {
    public static func percent(_ share: Double) -> String { "\(Int((min(share, 1e6) * 100).rounded())) %" }

    /// Three digits: 0.25, 4.3, 812, 12.4k, 3.1M.
    public static func number(_ value: Double) -> String {
        let size = abs(value)
        switch size {
        case ..<0.005: return "0"
        case ..<9.95: return value == value.rounded() ? String(Int(value)) : digits(value, size < 0.995 ? 2 : 1)
        case ..<9_999.5: return String(Int(value.rounded()))
        case ..<999_950: return digits(value / 1e3, 1) + "k"
        case ..<999_950_000: return digits(value / 1e6, 1) + "M"
        default: return digits(min(size, 1e18) / 1e9, 1) + "G"
        }
    }

    /// `1 record`, `2 records`, `12.4k pushes`.
    public static func counted(_ value: Double, _ noun: String) -> String {
        let figure = number(value)
        if figure == "1" { return "1 \(noun)" }
        return "\(figure) \(noun)\(noun.hasSuffix("sh") ? "es" : "s")"
    }

    private static func digits(_ value: Double, _ count: Int) -> String {
        let unit = count == 1 ? 10.0 : 100
        let whole = Int((value * unit).rounded())
        let rest = String(abs(whole) % Int(unit))
        return "\(whole / Int(unit)).\(String(repeating: "0", count: count - rest.count))\(rest)"
    }

    /// A suitable unit and two digits: 0.40 ms, 12 ms, 1.3 s, 75 s, 2 min.
    public static func duration(_ seconds: Double) -> String {
        let ms = min(max(0, seconds), 1e12) * 1000
        if ms < 10 { return "\(number(ms)) ms" }
        if ms < 10_000, ms >= 1_000 { return "\(digits(ms / 1000, 1)) s" }
        return AgeText.short(Int64(ms.rounded()))
    }
}
