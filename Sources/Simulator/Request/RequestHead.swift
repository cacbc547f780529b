// SPDX-License-Identifier: Apache-2.0
import Glibc
public import HTTP2

/// The header fields of one request that APNs knows, copied into one buffer, which the next request reuses.
public struct RequestHead: Sendable {
    /// A header field that APNs reads.
    public enum Field: Int, CaseIterable, Sendable {
        case method, path, authorization, topic, pushType, identifier, expiration, priority, collapseID, channelID

        /// The name as sent.
        public var name: StaticString {
            switch self {
            case .method: ":method"
            case .path: ":path"
            case .authorization: "authorization"
            case .topic: "apns-topic"
            case .pushType: "apns-push-type"
            case .identifier: "apns-id"
            case .expiration: "apns-expiration"
            case .priority: "apns-priority"
            case .collapseID: "apns-collapse-id"
            case .channelID: "apns-channel-id"
            }
        }

        /// The field of a lower-case name; nil for a field that APNs ignores.
        static func named(_ name: UnsafeRawBufferPointer) -> Field? {
            let candidate: Field
            // All lengths differ except for three pairs; one letter distinguishes each pair.
            switch name.count {
            case 5: candidate = .path
            case 7: candidate = name[0] == 0x3A ? .method : .identifier
            case 10: candidate = .topic
            case 13: candidate = name[1] == 0x75 ? .authorization : .priority
            case 14: candidate = .pushType
            case 15: candidate = name[5] == 0x63 ? .channelID : .expiration
            case 16: candidate = .collapseID
            default: return nil
            }
            guard let start = name.baseAddress else { return nil }
            // The length is already that of the candidate.
            return memcmp(start, candidate.name.utf8Start, name.count) == 0 ? candidate : nil
        }
    }

    private struct Piece {
        var start: Int32 = -1
        var count: Int32 = 0
    }

    private var bytes: [UInt8] = []
    private var pieces = InlineArray<10, Piece>(repeating: Piece())
    /// A known field was repeated.
    public private(set) var hasDuplicates = false

    /// Creates an empty head.
    public init() {}

    /// Removes all fields and keeps the memory.
    public mutating func clear() {
        bytes.removeAll(keepingCapacity: true)
        for index in pieces.indices { pieces[index] = Piece() }
        hasDuplicates = false
    }

    /// Adds one received field. Unknown fields are ignored; the first of a repeated field counts.
    public mutating func add(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        guard let field = Field.named(name) else { return }
        add(field, value)
    }

    /// Adds all fields of a received list.
    public mutating func add(_ fields: borrowing HeaderFields) {
        for index in 0..<fields.count { add(fields.name(index), fields.value(index)) }
    }

    /// Adds one known field.
    public mutating func add(_ field: Field, _ value: UnsafeRawBufferPointer) {
        guard pieces[field.rawValue].start < 0 else {
            hasDuplicates = true
            return
        }
        pieces[field.rawValue] = Piece(start: Int32(clamping: bytes.count), count: Int32(clamping: value.count))
        bytes.append(contentsOf: value)
    }

    /// The value of `field`; nil if absent.
    public subscript(field: Field) -> ArraySlice<UInt8>? {
        let piece = pieces[field.rawValue]
        guard piece.start >= 0 else { return nil }
        return bytes[Int(piece.start)..<Int(piece.start + piece.count)]
    }

    /// The value as text, for a ledger or a message. Invalid UTF-8 is replaced.
    public func text(_ field: Field) -> String? {
        self[field].map { String(decoding: $0, as: UTF8.self) }
    }
}
