// SPDX-License-Identifier: Apache-2.0
internal import Digits

/// A reply, or an element of one, for the duration of the delegate's call.
///
/// It refers to memory that the next reply overwrites, so copy data that must last. The error reply of a whole command
/// comes as `RedisFault`; `.error` appears only inside arrays (EXEC).
public struct RedisReply: ~Copyable {
    /// The five types of RESP2, and null.
    public enum Kind: UInt8, Sendable {
        case string, array, integer, null, status, error
    }

    private let arena: UnsafePointer<ReplyArena>
    private let node: ReplyArena.Node
    private let index: Int

    init(_ arena: UnsafePointer<ReplyArena>, _ index: Int) {
        self.arena = arena
        self.index = index
        node = arena.pointee.nodes[index]
    }

    public var kind: Kind { node.kind }
    public var isNull: Bool { node.kind == .null }

    /// An integer reply's value, or that of a decimal string; else nil.
    public var int64: Int64? {
        switch node.kind {
        case .integer: node.value
        case .string, .status: Decimal.signed(bytes)
        case .array, .null, .error: nil
        }
    }

    /// The bytes of a string, status or error; empty for the others.
    public var bytes: UnsafeRawBufferPointer {
        switch node.kind {
        case .string, .status, .error:
            UnsafeRawBufferPointer(start: arena.pointee.bytes + Int(node.value), count: node.length)
        case .array, .integer, .null: UnsafeRawBufferPointer(start: nil, count: 0)
        }
    }

    /// The text of a string or status, with invalid UTF-8 repaired; nil for other kinds.
    public var string: String? {
        switch node.kind {
        case .string, .status: String(decoding: bytes, as: UTF8.self)
        case .array, .integer, .null, .error: nil
        }
    }

    /// - Returns: whether the bytes are exactly this text.
    public func isText(_ text: StaticString) -> Bool {
        guard text.hasPointerRepresentation, node.kind != .array else { return false }
        let own = bytes
        let other = UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        return own.count == other.count && own.elementsEqual(other)
    }

    /// Elements of an array; 0 for the others.
    public var count: Int { node.kind == .array ? Int(node.count) : 0 }

    /// Element `position` of an array; a null reply beyond its end, so that a short answer cannot trap.
    ///
    /// In an array of arrays it walks over the preceding elements: use `forEach` there.
    public subscript(position: Int) -> RedisReply {
        guard position >= 0, position < count else { return RedisReply(absentIn: arena) }
        if node.isFlat { return RedisReply(arena, index + 1 + position) }
        var place = index + 1
        for _ in 0..<position { place = Int(arena.pointee.nodes[place].next) }
        return RedisReply(arena, place)
    }

    /// Calls `body` with each element in order.
    public func forEach(_ body: (borrowing RedisReply) -> Void) {
        var place = index + 1
        for position in 0..<count {
            let element = RedisReply(arena, place)
            body(element)
            if position + 1 < count { place = Int(element.node.next) }
        }
    }

    /// Calls `body` with pairs of elements, such as the fields and values of HGETALL. An odd last element is skipped.
    public func forEachPair(_ body: (borrowing RedisReply, borrowing RedisReply) -> Void) {
        var place = index + 1
        var left = count
        while left >= 2 {
            let first = RedisReply(arena, place)
            let second = RedisReply(arena, Int(first.node.next))
            body(first, second)
            left -= 2
            place = Int(second.node.next)
        }
    }

    /// A null for a missing reply.
    init(none arena: UnsafePointer<ReplyArena>) { self.init(absentIn: arena) }

    private init(absentIn arena: UnsafePointer<ReplyArena>) {
        self.arena = arena
        index = 0
        node = ReplyArena.Node(kind: .null)
    }
}
