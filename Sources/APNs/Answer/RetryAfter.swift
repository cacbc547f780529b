// SPDX-License-Identifier: Apache-2.0
/// The header `Retry-After` (RFC 9110 section 10.2.3): seconds, or a date.
enum RetryAfter {
    /// - Parameters:
    ///   - date: the answer's own `Date`: a date is compared with the clock that wrote it.
    ///   - nowMs: this machine's clock, for an answer without a date.
    /// - Returns: the seconds to wait; nil for a date that is not ahead and for anything malformed.
    static func seconds(_ bytes: some Collection<UInt8>, date: Int64?, nowMs: Int64) -> UInt32? {
        if let seconds = digits(bytes) { return seconds }
        let nowMs = date.map { $0 &* 1000 } ?? nowMs
        guard let at = HTTPDate.seconds(bytes, nowSeconds: nowMs / 1000) else { return nil }
        let leftMs = at &* 1000 &- nowMs
        return leftMs > 0 ? UInt32(clamping: (leftMs &+ 999) / 1000) : nil
    }

    private static func digits(_ bytes: some Collection<UInt8>) -> UInt32? {
        guard !bytes.isEmpty, bytes.count <= 40 else { return nil }
        var seconds: UInt64 = 0
        for byte in bytes {
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
            seconds = min(seconds &* 10 &+ UInt64(byte &- UInt8(ascii: "0")), UInt64(UInt32.max))
        }
        return UInt32(clamping: seconds)
    }
}
