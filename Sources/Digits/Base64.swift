// SPDX-License-Identifier: Apache-2.0
/// Base64 with padding (RFC 4648 section 4).
public enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// Characters for `byteCount` bytes, padding included.
    public static func count(_ byteCount: Int) -> Int { (byteCount + 2) / 3 * 4 }

    /// The ASCII text of `bytes`.
    public static func encode(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(count(bytes.count))
        forEachCharacter(of: bytes, alphabet) { text.append($0) }
        while text.count % 4 != 0 { text.append(UInt8(ascii: "=")) }
        return text
    }

    /// Fills `text`, which must have `count` bytes. Makes no other copy, so it is suitable for secrets.
    public static func write(_ bytes: UnsafeRawBufferPointer, to text: UnsafeMutableRawBufferPointer) {
        precondition(text.count == count(bytes.count), "the text's size is another")
        var filled = 0
        forEachCharacter(of: bytes, alphabet) {
            text[filled] = $0
            filled += 1
        }
        while filled < text.count {
            text[filled] = UInt8(ascii: "=")
            filled += 1
        }
    }

    /// The characters without padding.
    static func forEachCharacter(
        of bytes: some Collection<UInt8>, _ alphabet: [UInt8], _ body: (UInt8) -> Void
    ) {
        var bits: UInt32 = 0
        var held = 0
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            held += 8
            while held >= 6 {
                held -= 6
                body(alphabet[Int(bits >> UInt32(held) & 0x3F)])
            }
        }
        if held > 0 { body(alphabet[Int(bits << UInt32(6 - held) & 0x3F)]) }
    }
}
