// SPDX-License-Identifier: Apache-2.0
import Digits

/// The settled offsets of a partition beyond its committed one.
///
/// A record that waits for long holds back the committed offset. This set goes into each commit's metadata, so that the
/// next owner does not repeat the settled records after a crash. An offset costs one bit.
public struct SettledOffsets: Equatable, Sendable {
    /// The committed offset of the same commit, which is bit 0.
    public let base: Int64
    /// The newest time of the records that were read when the list was made, Unix ms; nil: not known. A later record at a
    /// listed offset belongs to another epoch of the partition.
    public var newestMs: Int64?
    /// Lowest bit first; the last byte is not zero.
    private var bytes: [UInt8] = []

    /// Below the 4096 bytes that brokers accept at least (`offset.metadata.max.bytes`).
    public static let maxCharacters = 4000
    /// As many bytes as base64 has place for between the longest prefix, and the longest time and cluster.
    private static let maxBytes = (maxCharacters - prefix.count - 53) / 4 * 3
    /// The version of the text; any other is ignored.
    private static let prefix = Array("carillon1:".utf8)

    public init(base: Int64) { self.base = max(0, base) }

    public var isEmpty: Bool { bytes.isEmpty }

    /// Number of offsets from the base that can be represented.
    static var capacity: Int64 { Int64(maxBytes) * 8 }

    /// The offset after the last settled one; the base if there is none.
    var end: Int64 {
        guard let last = bytes.last else { return base }
        return base &+ Int64(bytes.count * 8 - last.leadingZeroBitCount)
    }

    public func contains(_ offset: Int64) -> Bool {
        guard offset >= base else { return false }
        let distance = offset &- base
        guard distance < Int64(bytes.count) * 8 else { return false }
        return bytes[Int(distance >> 3)] & 1 << UInt8(distance & 7) != 0
    }

    /// An offset too far from the base is left out and repeated after a crash.
    public mutating func insert(_ offset: Int64) {
        guard offset >= base, offset &- base < Self.capacity else { return }
        let distance = Int(offset &- base)
        let missing = distance / 8 + 1 - bytes.count
        if missing > 0 { bytes.append(contentsOf: repeatElement(0, count: missing)) }
        bytes[distance / 8] |= 1 << UInt8(distance % 8)
    }

    /// Adds the offsets of the other from this base on.
    public mutating func formUnion(_ other: SettledOffsets) {
        var offset = max(base, other.base)
        while offset < other.end {
            if other.contains(offset) { insert(offset) }
            offset &+= 1
        }
    }

    // MARK: - As a commit's metadata

    /// `carillon1:<base>:<base64url>`, then `:<newest>` where that time is known, and `:c<cluster>`; of at most `maxCharacters`, cut at the
    /// far end of the list; empty when nothing is settled.
    ///
    /// - Parameter cluster: of the offsets (`cluster(_:)`); nil: not known.
    public func metadata(maxCharacters: Int = Self.maxCharacters, cluster: UInt32? = nil) -> [UInt8] {
        if isEmpty { return [] }
        var text = Self.prefix + Array("\(base):".utf8)
        let end = Array(((newestMs.map { ":\($0)" } ?? "") + (cluster.map { ":c\($0)" } ?? "")).utf8)
        let place = max(0, min(maxCharacters, Self.maxCharacters) - text.count - end.count)
        let told = bytes.prefix(place / 4 * 3)
        if told.isEmpty { return [] }
        text += Base64URL.encode(told)
        return text + end
    }

    /// The cluster's id as metadata names it.
    public static func cluster(_ id: String) -> UInt32 { FNV1a.hash(id) }

    /// - Parameter cluster: the one that is read now; nil: not known.
    /// - Returns: nil for any text except that of `metadata` for this committed offset of this cluster: other programs commit too, and
    ///   tools that copy groups to another cluster copy metadata to other offsets.
    public init?(metadata: UnsafeRawBufferPointer, committed: Int64, cluster: UInt32? = nil) {
        guard committed >= 0, metadata.count <= Self.maxCharacters, metadata.starts(with: Self.prefix) else {
            return nil
        }
        let expected = Self.prefix + Array("\(committed):".utf8)
        guard metadata.starts(with: expected) else { return nil }
        var list = metadata.dropFirst(expected.count)
        if let colon = list.lastIndex(of: UInt8(ascii: ":")), list[(colon + 1)...].first == UInt8(ascii: "c") {
            guard let told = UInt32(String(decoding: list[(colon + 2)...], as: UTF8.self)), told == cluster ?? told
            else {
                return nil
            }
            list = list[..<colon]
        }
        if let colon = list.lastIndex(of: UInt8(ascii: ":")) {
            guard let ms = Int64(String(decoding: list[list.index(after: colon)...], as: UTF8.self)) else { return nil }
            newestMs = ms
            list = list[..<colon]
        }
        guard var bytes = Base64URL.decode(list), bytes.count <= Self.maxBytes,
            committed <= .max - Self.capacity
        else { return nil }
        while bytes.last == 0 { bytes.removeLast() }
        if bytes.isEmpty { return nil }
        base = committed
        self.bytes = bytes
    }
}
