/// Outside text on a page for people.
public enum HTMLText {
    /// The text as a page shows it, in elements and in quoted attributes; what people should not meet (`Unprintable`) by its
    /// number.
    public static func escaped(_ text: String) -> String {
        // By scalars: with a mark behind it a bracket is another character, but the same to a browser.
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
