// SPDX-License-Identifier: Apache-2.0
import JSON

/// Frames that nghttp2 would not send in that state.
enum RawFrames {
    /// A GOAWAY frame (RFC 9113 section 6.8) with last stream id 0.
    static func goAway(code: UInt32, debug: [UInt8]) -> [UInt8] {
        let count = 8 + debug.count
        let head = [
            UInt8(truncatingIfNeeded: count >> 16), UInt8(truncatingIfNeeded: count >> 8),
            UInt8(truncatingIfNeeded: count),
        ]
        let codeBytes = withUnsafeBytes(of: code.bigEndian) { Array($0) }
        return head + [0x07, 0x00, 0, 0, 0, 0] + [0, 0, 0, 0] + codeBytes + debug
    }

    /// The debug bytes of APNs' GOAWAY.
    static func debug(_ reason: String?) -> [UInt8] {
        guard let reason else { return [] }
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("reason", reason)
        writer.endObject()
        return writer.bytes
    }
}
