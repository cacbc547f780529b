// SPDX-License-Identifier: Apache-2.0
/// Patterns of KEYS, SCAN and key rules: `*`, `?`, `[a-z]`, `[^x]` and `\`.
enum Glob {
    static func matches(_ pattern: Bytes, _ text: Bytes) -> Bool { matches(pattern[...], text[...]) }

    private static func matches(_ wholePattern: ArraySlice<UInt8>, _ wholeText: ArraySlice<UInt8>) -> Bool {
        var pattern = wholePattern
        var text = wholeText
        while let sign = pattern.first {
            switch sign {
            case 42:
                let rest = pattern.drop { $0 == 42 }
                if rest.isEmpty { return true }
                while true {
                    if matches(rest, text) { return true }
                    if text.popFirst() == nil { return false }
                }
            case 63:
                if text.popFirst() == nil { return false }
                pattern = pattern.dropFirst()
            case 91:
                guard let byte = text.popFirst(), let rest = afterClass(pattern.dropFirst(), byte) else { return false }
                pattern = rest
            default:
                if sign == 92, pattern.count > 1 { pattern = pattern.dropFirst() }
                guard text.popFirst() == pattern.first else { return false }
                pattern = pattern.dropFirst()
            }
        }
        return text.isEmpty
    }

    /// The pattern behind a class if the byte is of that class.
    private static func afterClass(_ start: ArraySlice<UInt8>, _ byte: UInt8) -> ArraySlice<UInt8>? {
        var rest = start
        let isNegated = rest.first == 94
        if isNegated { rest = rest.dropFirst() }
        var isFound = false
        while let sign = rest.first, sign != 93 {
            rest = rest.dropFirst()
            if sign == 92, let next = rest.popFirst() {
                isFound = isFound || next == byte
            } else if rest.first == 45, let high = rest.dropFirst().first {
                rest = rest.dropFirst(2)
                isFound = isFound || (min(sign, high)...max(sign, high)).contains(byte)
            } else {
                isFound = isFound || sign == byte
            }
        }
        return isFound == isNegated ? nil : rest.dropFirst()
    }
}
