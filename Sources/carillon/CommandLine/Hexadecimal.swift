import Crypto

/// Bytes as text that any line can hold.
enum Hexadecimal {
    static func text(_ bytes: [UInt8]) -> String { Hex.string(bytes) }

    /// Nil for what is no hexadecimal text.
    static func bytes(_ text: String) -> [UInt8]? { Hex.bytes(Array(text.utf8)) }
}
