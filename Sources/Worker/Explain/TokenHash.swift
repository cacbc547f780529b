import Crypto

/// How a device token is shown to people: enough to tell two apart, nothing to push to.
public enum TokenHash {
    /// `#` and the first eight digits of the token's SHA-256.
    public static func short(_ hex: String) -> String {
        "#" + SHA256.hex(Array(hex.utf8)).prefix(8)
    }
}
