// SPDX-License-Identifier: Apache-2.0
import COpenSSL

/// The reason why a TLS context could not be created: an invalid certificate, key or trust store.
public struct TLSFault: Error, Equatable, Sendable, CustomStringConvertible {
    public let description: String

    public init(_ text: String) { description = text }
}

/// Takes OpenSSL's newest error from this thread's queue and clears the queue.
///
/// A stale entry would turn the next call's harmless "would block" into a fault (openssl#8470).
func takeOpenSSLError() -> (text: String, reason: Int32)? {
    let code = ERR_peek_last_error()
    ERR_clear_error()
    guard code != 0 else { return nil }
    let text = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
        guard let start = buffer.baseAddress else { return "OpenSSL error \(code)" }
        ERR_error_string_n(code, start, buffer.count)
        return String(cString: start)
    }
    // ERR_GET_REASON is an inline function like a macro: the low 23 bits, except for system errors.
    return (text, Int32(truncatingIfNeeded: code & 0x7F_FFFF))
}
