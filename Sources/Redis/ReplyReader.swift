// SPDX-License-Identifier: Apache-2.0
internal import CHiredis
internal import Digits

/// hiredis' reply parser with our own arena.
///
/// Owns the C reader, its table of builder functions, and the arena that those fill.
struct ReplyReader: ~Copyable {
    enum Next: Equatable {
        /// A whole reply is in the arena, until `release()`.
        case reply
        /// A whole reply over the limit has arrived and was not kept. Must be released too.
        case tooLarge
        case needsBytes
        /// Not RESP2, or nested deeper than 7: the connection is unusable.
        case broken
    }

    private let raw: UnsafeMutablePointer<redisReader>
    private let functions: UnsafeMutablePointer<redisReplyObjectFunctions>
    let arena: UnsafeMutablePointer<ReplyArena>
    /// For a string over the limit: bytes still to arrive, which are dropped.
    private var droppedBytes = 0

    /// The longest line (a status, an error). Redis limits its own to much less.
    private static let lineBytesMax = 65_536
    /// The longest length of a string in digits, with its line end.
    private static let lengthBytesMax = 22
    /// hiredis handles strings up to this length, whatever the limit.
    private static let smallBulkBytes: Int64 = 4096
    /// A larger announced length is not RESP2 (`proto-max-bulk-len` is much smaller).
    private static let bulkBytesMax: Int64 = 1 << 40

    init(replyBytesMax: Int) throws(RedisFault) {
        functions = .allocate(capacity: 1)
        functions.initialize(to: ReplyBuilder.functions)
        arena = .allocate(capacity: 1)
        arena.initialize(to: ReplyArena(bytesMax: replyBytesMax))
        guard let raw = redisReaderCreateWithFunctions(functions) else {
            functions.deallocate()
            arena.deinitialize(count: 1)
            arena.deallocate()
            throw RedisFault(.unreachable, "no memory for a reply reader")
        }
        self.raw = raw
        raw.pointee.privdata = UnsafeMutableRawPointer(arena)
    }

    deinit {
        redisReaderFree(raw)
        functions.deallocate()
        arena.deinitialize(count: 1)
        arena.deallocate()
    }

    /// Adds bytes from the server. Feed at most 4 KB at a time, then take all replies.
    ///
    /// The reader moves its whole rest forward after each consumed kilobyte, so a large block would be moved dozens of
    /// times.
    mutating func feed(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        if droppedBytes > 0 {
            let dropped = min(droppedBytes, rest.count)
            droppedBytes -= dropped
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(dropped))
        }
        if rest.isEmpty { return }
        _ = redisReaderFeed(raw, rest.baseAddress?.assumingMemoryBound(to: CChar.self), rest.count)
    }

    mutating func next() -> Next {
        while true {
            var reply: UnsafeMutableRawPointer?
            guard redisReaderGetReply(raw, &reply) == REDIS_OK else { return .broken }
            if reply != nil { return arena.pointee.isOverLimit ? .tooLarge : .reply }
            switch waiting() {
            case .bulkOverLimit(let head, let length): passOver(head: head, length: length)
            case .needsBytes: return .needsBytes
            case .broken: return .broken
            }
        }
    }

    private enum Waiting {
        case needsBytes
        case broken
        /// A string head has arrived (its size with the line end) and announces a string over the limit.
        case bulkOverLimit(head: Int, length: Int)
    }

    /// The element that hiredis waits for.
    private func waiting() -> Waiting {
        let count = raw.pointee.len - raw.pointee.pos
        guard count > 0, let start = raw.pointee.buf else { return .needsBytes }
        let bytes = UnsafeRawBufferPointer(start: start + raw.pointee.pos, count: count)
        guard carillonReaderAwaitsBulk(raw) != 0 else { return count > Self.lineBytesMax ? .broken : .needsBytes }
        guard let lineEnd = Self.lineEnd(bytes.prefix(Self.lengthBytesMax)) else {
            return count > Self.lengthBytesMax ? .broken : .needsBytes
        }
        // hiredis has refused anything except a number.
        guard let length = Decimal.signed(UnsafeRawBufferPointer(rebasing: bytes[..<lineEnd])) else { return .broken }
        guard length <= Self.bulkBytesMax else { return .broken }
        guard length > Self.smallBulkBytes, arena.pointee.isOverLimit || !arena.pointee.hasRoom(for: Int(length)) else {
            return .needsBytes
        }
        return .bulkOverLimit(head: lineEnd + 2, length: Int(length))
    }

    /// Position of the line's `\r\n`. A `\r` alone does not end a line.
    private static func lineEnd(_ bytes: Slice<UnsafeRawBufferPointer>) -> Int? {
        bytes.indices.dropLast().first { bytes[$0] == UInt8(ascii: "\r") && bytes[$0 + 1] == UInt8(ascii: "\n") }
    }

    /// hiredis keeps a string until it is whole. For one over the limit it gets a null in place of the arrived part,
    /// and the rest is dropped before hiredis sees it.
    private mutating func passOver(head: Int, length: Int) {
        guard let start = raw.pointee.buf else { return }
        let come = raw.pointee.len - raw.pointee.pos - head
        droppedBytes = max(0, length + 2 - come)
        arena.pointee.passOver()
        let null: StaticString = "-1\r\n"
        // The head alone, with more than four digits, is longer.
        raw.pointee.pos = raw.pointee.len - null.utf8CodeUnitCount
        UnsafeMutableRawPointer(start + raw.pointee.pos)
            .copyMemory(from: null.utf8Start, byteCount: null.utf8CodeUnitCount)
    }

    /// The reply that is being read is over the limit; its end may be far.
    var isPassingOver: Bool { arena.pointee.isOverLimit }

    /// The reply was used. Its memory serves the next one.
    func release() { arena.pointee.reset() }

    /// Memory of the reader: replies, and bytes of an incomplete reply.
    var heldBytes: Int { arena.pointee.heldBytes + raw.pointee.len }

    /// The reason for broken.
    var brokenText: String {
        guard raw.pointee.err != 0 else { return "a line or a string without end" }
        return withUnsafeBytes(of: &raw.pointee.errstr) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }
}

/// The functions that hiredis calls for each value.
///
/// hiredis treats an object as an opaque word, so a node's index plus one is passed as a pointer that is never
/// dereferenced.
private enum ReplyBuilder {
    static var functions: redisReplyObjectFunctions {
        redisReplyObjectFunctions(
            createString: { task, text, length in
                guard let task, let text, let arena = ReplyBuilder.arena(of: task) else { return nil }
                let start = arena.pointee.addBytes(text, count: length)
                let kind: RedisReply.Kind =
                    switch task.pointee.type {
                    case REDIS_REPLY_ERROR: .error
                    case REDIS_REPLY_STATUS: .status
                    default: .string
                    }
                return ReplyBuilder.add(ReplyArena.Node(kind: kind, value: Int64(start), length: length), task)
            },
            createArray: { task, _ in task.flatMap { ReplyBuilder.add(ReplyArena.Node(kind: .array), $0) } },
            createInteger: { task, value in
                task.flatMap { ReplyBuilder.add(ReplyArena.Node(kind: .integer, value: value), $0) }
            },
            createNil: { task in task.flatMap { ReplyBuilder.add(ReplyArena.Node(kind: .null), $0) } },
            // Called only for an incomplete reply. The arena is reset as a whole.
            freeObject: { _ in })
    }

    private static func arena(of task: UnsafePointer<redisReadTask>) -> UnsafeMutablePointer<ReplyArena>? {
        task.pointee.privdata?.assumingMemoryBound(to: ReplyArena.self)
    }

    private static func add(_ node: ReplyArena.Node, _ task: UnsafePointer<redisReadTask>) -> UnsafeMutableRawPointer? {
        guard let arena = arena(of: task) else { return nil }
        let parent = task.pointee.parent.flatMap { $0.pointee.obj }.map { Int(bitPattern: $0) - 1 }
        return UnsafeMutableRawPointer(bitPattern: arena.pointee.add(node, under: parent) + 1)
    }
}
