internal import Crypto
internal import Digits

/// The secret by which fakes are made: under one key the same original always gets the same fake, and nobody without it can
/// tell which original a fake stands for.
public struct ScrubKey: Sendable {
    private let bytes: [UInt8]

    /// Bytes of a secret that an operator keeps, of which at least 16 are wanted.
    public static let bytesMin = 16

    /// A key of its own for one recording.
    public static func random() throws -> ScrubKey { ScrubKey(hashed: try RandomBytes.make(32)) }

    /// Nil: too short to keep anything secret.
    public init?(_ secret: [UInt8]) {
        guard secret.count >= Self.bytesMin else { return nil }
        self.init(hashed: secret)
    }

    /// Of a made-up world: no secret, since nothing real stands behind its fakes.
    init(worldSeed: UInt64) { self.init(hashed: Array("world \(worldSeed)".utf8)) }

    private init(hashed secret: [UInt8]) { bytes = SHA256.hash(secret) }

    /// `count` digits in hexadecimal for a token, whichever case it was written in.
    func token(_ token: some Collection<UInt8>) -> String {
        // Bit 5 turns A-F into a-f and leaves digits alone.
        digits(of: token.map { $0 | 0x20 }, kind: 1, count: token.count)
    }

    /// As many digits for what is no token itself.
    func token(_ name: some Collection<UInt8>, count: Int) -> String { digits(of: Array(name), kind: 3, count: count) }

    /// A name in place of an identifier: at most 14 bytes, so within every limit.
    func id(_ id: some Collection<UInt8>) -> String { "x-" + digits(of: Array(id), kind: 2, count: 12) }

    /// SHA-256 of a key of fixed length, the kind, the block's number and the original, as far as is wanted.
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
