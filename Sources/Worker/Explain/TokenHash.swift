// SPDX-License-Identifier: Apache-2.0
import Crypto

/// The form in which people see a device token: enough to distinguish two, useless for a push.
public enum TokenHash {
    /// `#` and the first eight digits of the token's SHA-256.
    public static func short(_ hex: String) -> String {
        "#" + SHA256.hex(Array(hex.utf8)).prefix(8)
    }
}
