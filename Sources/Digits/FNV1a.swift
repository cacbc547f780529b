// SPDX-License-Identifier: Apache-2.0
/// The 32-bit hash FNV-1a, for short names in stored forms. Equal in every process, and no defence against chosen collisions.
public enum FNV1a {
    public static func hash(_ text: String) -> UInt32 {
        var hash: UInt32 = 2_166_136_261
        text.withUTF8Bytes { for byte in $0 { hash = (hash ^ UInt32(byte)) &* 16_777_619 } }
        return hash
    }
}
