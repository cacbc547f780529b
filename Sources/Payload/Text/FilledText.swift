// SPDX-License-Identifier: Apache-2.0
/// Fills the places `{name}` of a text.
enum FilledText {
    /// Replaces each place once: braces in a value are not filled.
    ///
    /// - Parameters:
    ///   - bytesMax: the text may stop after so many bytes, since its caller cuts it there.
    ///   - value: the value of a name; nil leaves the place as it is.
    static func fill(_ text: String, bytesMax: Int = .max, _ value: (Substring) -> String?) -> String {
        var filled = ""
        var rest = Substring(text)
        while filled.utf8.count <= bytesMax, let open = rest.utf8.firstIndex(of: UInt8(ascii: "{")) {
            filled += rest[..<open]
            rest = rest[open...]
            guard let end = rest.utf8.dropFirst().firstIndex(where: { braces.contains($0) }),
                rest.utf8[end] == UInt8(ascii: "}"), let value = value(rest[rest.utf8.index(after: open)..<end])
            else {
                filled += "{"
                rest = rest[rest.utf8.index(after: open)...]
                continue
            }
            filled += value
            rest = rest[rest.utf8.index(after: end)...]
        }
        return filled.utf8.count > bytesMax ? filled : filled + rest
    }

    private static let braces = [UInt8(ascii: "{"), UInt8(ascii: "}")]
}
