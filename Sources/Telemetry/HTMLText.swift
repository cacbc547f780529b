// SPDX-License-Identifier: Apache-2.0
/// Outside text on a page for people.
public enum HTMLText {
    /// The text for elements and quoted attributes. Unprintable characters (`Unprintable`) become their numbers.
    public static func escaped(_ text: String) -> String {
        // By scalars: a bracket with a combining mark is a different character, but not for a browser.
        Unprintable.escaped(text).unicodeScalars.reduce(into: "") { out, scalar in
            switch scalar {
            case "<": out += "&lt;"
            case ">": out += "&gt;"
            case "&": out += "&amp;"
            case "\"": out += "&quot;"
            default: out.unicodeScalars.append(scalar)
            }
        }
    }
}
