internal import CHiredis

/// hiredis' reply parser over an arena of our own.
///
/// Owns the C reader, the table of builder functions that it points to, and the arena that those fill.
struct ReplyReader: ~Copyable {
    enum Next: Equatable {
        /// A whole reply is in the arena, until `release()`.
        case reply
        case needsBytes
        /// Not RESP2, nested deeper than 7, or over the limit: the connection is of no more use.
        case broken
    }

    private let raw: UnsafeMutablePointer<redisReader>
    private let functions: UnsafeMutablePointer<redisReplyObjectFunctions>
    let arena: UnsafeMutablePointer<ReplyArena>
    private let bytesMax: Int

    init(replyBytesMax: Int) throws(RedisFault) {
        functions = .allocate(capacity: 1)
        functions.initialize(to: ReplyBuilder.functions)
        arena = .allocate(capacity: 1)
        arena.initialize(to: ReplyArena(bytesMax: replyBytesMax))
        bytesMax = replyBytesMax
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

    /// Hands over bytes of the server; feed at most 4 KB at a time, then take all replies.
    ///
    /// The reader moves its whole rest forward after each kilobyte that it consumed, so a large block fed at once would
    /// be moved dozens of times.
    func feed(_ bytes: UnsafeRawBufferPointer) {
        _ = redisReaderFeed(raw, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    }

    func next() -> Next {
        var reply: UnsafeMutableRawPointer?
        guard redisReaderGetReply(raw, &reply) == REDIS_OK else {
            return .broken
        }
        if reply != nil { return .reply }
        // A string is kept by the reader until it is whole.
        return raw.pointee.len > bytesMax ? .broken : .needsBytes
    }

    /// The reply was used; its storage serves the next one.
    func release() { arena.pointee.reset() }

    /// Why `next()` said broken.
    var brokenText: String {
        guard raw.pointee.err != 0, !arena.pointee.isOverLimit else { return "the reply is over the limit" }
        return withUnsafeBytes(of: &raw.pointee.errstr) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }
}

/// The functions that hiredis calls for each value it reads.
///
/// hiredis treats an object as an opaque word, so a node's index plus one travels as a pointer that nobody follows.
private enum ReplyBuilder {
    static var functions: redisReplyObjectFunctions {
        redisReplyObjectFunctions(
            createString: { task, text, length in
                guard let task, let text, let arena = ReplyBuilder.arena(of: task) else { return nil }
                guard let start = arena.pointee.addBytes(text, count: length) else { return nil }
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
            // Called for a half-built reply only; the arena is reset as a whole.
            freeObject: { _ in })
    }

    private static func arena(of task: UnsafePointer<redisReadTask>) -> UnsafeMutablePointer<ReplyArena>? {
        task.pointee.privdata?.assumingMemoryBound(to: ReplyArena.self)
    }

    private static func add(_ node: ReplyArena.Node, _ task: UnsafePointer<redisReadTask>) -> UnsafeMutableRawPointer? {
        guard let arena = arena(of: task) else { return nil }
        let parent = task.pointee.parent.flatMap { $0.pointee.obj }.map { Int(bitPattern: $0) - 1 }
        guard let index = arena.pointee.add(node, under: parent) else { return nil }
        return UnsafeMutableRawPointer(bitPattern: index + 1)
    }
}
