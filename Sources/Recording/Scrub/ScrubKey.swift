// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import Digits

/// The secret for replacements. Under one key, the same original always gets the same replacement, and nobody without
/// the key can find the original.
public struct ScrubKey: Sendable {
    private let bytes: [UInt8]

    /// Minimum length of an operator's secret in bytes.
    public static let bytesMin = 16

    /// A new key for one recording.
    public static func random() throws -> ScrubKey { ScrubKey(hashed: try RandomBytes.make(32)) }

    /// - Returns: nil if the secret is too short.
    public init?(_ secret: [UInt8]) {
        guard secret.count >= Self.bytesMin else { return nil }
        self.init(hashed: secret)
    }

    /// The key of a generated world. It is not secret, because the world has no real data.
    init(worldSeed: UInt64) { self.init(hashed: Array("world \(worldSeed)".utf8)) }

    private init(hashed secret: [UInt8]) { bytes = SHA256.hash(secret) }

    /// `count` hexadecimal digits in place of a token, independent of the token's case.
    func token(_ token: some Collection<UInt8>) -> String {
        // Bit 5 turns A-F into a-f and leaves digits unchanged.
        digits(of: token.map { $0 | 0x20 }, kind: 1, count: token.count)
    }

    /// `count` digits for a name that is not a token itself.
    func token(_ name: some Collection<UInt8>, count: Int) -> String { digits(of: Array(name), kind: 3, count: count) }

    /// A name in place of an identifier: at most 14 bytes, so within every limit.
    func id(_ id: some Collection<UInt8>) -> String { "x-" + digits(of: Array(id), kind: 2, count: 12) }

    /// SHA-256 of a key of fixed length, the kind, the block number and the original, to the needed length.
    private func digits(of original: [UInt8], kind: UInt8, count: Int) -> String {
        var digits: [UInt8] = []
        var block: UInt8 = 0
        while digits.count < count {
            digits += Hex.digits(SHA256.hash(bytes + [kind, block] + original))
            block &+= 1
        }
        return String(decoding: digits.prefix(count), as: UTF8.self)
    }
}
