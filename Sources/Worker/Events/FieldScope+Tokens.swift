// SPDX-License-Identifier: Apache-2.0
import APNs
import JSON

/// Device tokens: whole bytes in hexadecimal, lower-cased, so that one token has one spelling.
extension FieldScope {
    func hexToken(_ key: Key) throws(BadRecord) -> String { try hexToken(try required(key), key) }

    /// - Returns: nil if the field is absent.
    func hexTokens(_ key: Key, atMost most: Int) throws(BadRecord) -> [String]? {
        guard let value = try list(key, of: "strings", atMost: most) else { return nil }
        var list: [String] = []
        list.reserveCapacity(value.count)
        for element in value.elements { list.append(try hexToken(element, key, item: list.count)) }
        return list
    }

    private func hexToken(_ value: JSONCursor, _ key: Key, item: Int? = nil) throws(BadRecord) -> String {
        guard let utf8 = value.utf8 else { throw fault(.wrongType, "must be a string", key, value, item: item) }
        guard utf8.count <= DeviceToken.digitsMax else {
            throw fault(.longIdentifier, "longer than \(DeviceToken.digitsMax) bytes", key, value, item: item)
        }
        guard !utf8.isEmpty, utf8.count.isMultiple(of: 2), utf8.allSatisfy(Self.isHexDigit) else {
            throw fault(.outOfRange, "must be bytes in hexadecimal", key, value, item: item)
        }
        return String(unsafeUninitializedCapacity: utf8.count) { buffer in
            for (index, byte) in utf8.enumerated() {
                // Bit 5 turns A-F into a-f and leaves digits alone.
                buffer[index] = byte | 0x20
            }
            return utf8.count
        }
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }
}
