// SPDX-License-Identifier: Apache-2.0
internal import COpenSSL

/// A Lua script, identified in Redis by the digest of its text.
///
/// One value per script for the life of the process: the client recognises it by identity.
public final class RedisScript: Sendable {
    let source: [UInt8]
    /// The SHA-1 in lower-case hex for EVALSHA.
    public let sha1: String
    let digest: [UInt8]

    /// Computes the digest once.
    ///
    /// Begin the source with `#!lua`: Redis 7 at its memory limit then refuses a script before it writes anything.
    public init(_ source: String) {
        let bytes = Array(source.utf8)
        var raw = [UInt8](repeating: 0, count: 20)
        _ = SHA1(bytes, bytes.count, &raw)
        let digits = Array("0123456789abcdef".utf8)
        let hex = raw.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        self.source = bytes
        digest = hex
        sha1 = String(decoding: hex, as: UTF8.self)
    }
}
