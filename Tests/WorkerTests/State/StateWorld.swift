// SPDX-License-Identifier: Apache-2.0
import EventLoop
import PushCore
import Redis
import Support

@testable import Worker

/// A real redis-server, a client on a loop and a store over it, each command awaited.
actor StateWorld {
    nonisolated let loop: Loop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    let server: RedisServer
    private let replies = Replies()
    private var client: RedisClient?
    private var stored: StateStore?

    static let app = "im"
    /// All times of the tests lie near this one.
    static let base: Int64 = 1_700_000_000_000

    init() throws {
        loop = try Loop(name: "state")
        server = try RedisServer()
        loop.start()
    }

    /// Connects; call it once before all else.
    func connect() async throws {
        let client = try RedisClient(loop: loop, endpoint: RedisEndpoint(url: server.url))
        client.delegate = replies
        self.client = client
        await withCheckedContinuation { continuation in
            replies.onReady = { continuation.resume() }
            client.start()
        }
        stored = StateStore(.single(client))
    }

    nonisolated func end() async {
        await close()
        loop.stop()
    }

    /// Of a test that threw before its end; what was bound to a loop that has ended may be released anywhere.
    deinit { loop.stop() }

    private func close() {
        client?.close()
        client = nil
        stored = nil
    }

    /// One command with one reply.
    func ask<Value: Sendable>(
        _ send: (StateStore, UInt64) throws -> Void, _ parse: @escaping (borrowing RedisReply) -> Value
    ) async throws -> Value {
        guard let stored else { throw SetupFault("not connected") }
        let tag = replies.nextTag()
        try send(stored, tag)
        return try await withCheckedThrowingContinuation { continuation in
            replies.handlers[tag] = Replies.Handler(
                take: { reply in
                    continuation.resume(returning: parse(reply))
                    return true
                },
                fail: { fault in continuation.resume(throwing: fault) })
        }
    }

    /// A plain command, its reply as an integer or else nil.
    @discardableResult
    func raw(_ words: String...) async throws -> Int64? {
        try await ask(
            { store, tag in
                try store.client.command(tag) { command in
                    for word in words { command.arg(word) }
                }
            }, { $0.int64 })
    }

    func text(_ words: String...) async throws -> String {
        try await ask(
            { store, tag in
                try store.client.command(tag) { command in
                    for word in words { command.arg(word) }
                }
            }, { $0.string ?? "" })
    }

    func claim(_ request: ClaimRequest) async throws -> ClaimReply {
        let reply = try await ask({ try $0.claim(request, tag: $1) }, { ClaimReply($0) })
        guard let reply else { throw SetupFault("no claim's reply") }
        return reply
    }

    /// Marks it as ended, as a worker does once the broker has its last record.
    func finish(_ request: ClaimRequest, saying content: [UInt8] = []) async throws {
        _ = try await ask(
            {
                let mark = $0.preparedMark(
                    app: request.app, uid: request.uid, request.subject, nowMs: request.nowMs
                ) { $0.part(content) }
                try $0.writeMark(mark, tag: $1)
            }, { $0.string })
    }

    /// A change of user state from its first to its last step, or up to `steps` of them: nil when it was cut short.
    @discardableResult
    func change(
        _ uid: String, _ change: UserState.Change, at ms: Int64 = 0, steps: Int = .max
    ) async throws -> StateOutcome? {
        var task = TaskRunner(
            task: UserStateTask(
                app: Self.app, sentMs: Self.base + ms, nowMs: Self.base + 1000,
                state: UserState(uid: uid, change: change)))
        for _ in 0..<steps {
            if let outcome = try await step(&task) { return outcome }
        }
        return nil
    }

    /// A read where `clear_on_read` is on: whether devices are to be told.
    func owesClear(_ uid: String, _ change: UserState.Change, at ms: Int64) async throws -> Bool {
        var runner = TaskRunner(
            task: UserStateTask(
                app: Self.app, sentMs: Self.base + ms, nowMs: Self.base + 1000,
                state: UserState(uid: uid, change: change), clearsOnRead: true))
        _ = try await step(&runner)
        return runner.task.owesClear
    }

    private struct Taken: Sendable {
        var progress: UserStateTask.Progress
        var task: UserStateTask
    }

    struct TaskRunner: Sendable {
        var task: UserStateTask
    }

    /// One step; the outcome if it was the last one.
    func step(_ runner: inout TaskRunner) async throws -> StateOutcome? {
        guard let stored else { throw SetupFault("not connected") }
        if runner.task.isEmpty { return .ignored(.unusable) }
        let tag = replies.nextTag()
        try runner.task.send(stored, tag: tag)
        let box = Box(runner.task)
        let taken: Taken = try await withCheckedThrowingContinuation { continuation in
            replies.handlers[tag] = Replies.Handler(
                take: { reply in
                    let progress = box.task.take(reply)
                    if progress == .waiting { return false }
                    continuation.resume(returning: Taken(progress: progress, task: box.task))
                    return true
                },
                fail: { fault in continuation.resume(throwing: fault) })
        }
        runner.task = taken.task
        if case .done(let outcome) = taken.progress { return outcome }
        return nil
    }

    struct Read: Sendable {
        var recipient: Recipient
        var version: Int64 = 0
    }

    /// All that the worker reads of a recipient, and the token version.
    func recipient(
        _ uid: String, conversation: String = "c", group: String? = nil
    ) async throws -> Read {
        let box = RecipientBox(uid)
        box.read.version = try await ask(
            { try $0.readConversation(app: Self.app, uid: uid, conversation: conversation, tag: $1) },
            { RecipientReplies.conversation($0, into: &box.read.recipient) })
        try await ask(
            { try $0.readUser(app: Self.app, uid: uid, tag: $1) },
            { RecipientReplies.user($0, into: &box.read.recipient) })
        try await ask(
            { try $0.readPresence(app: Self.app, uid: uid, tag: $1) },
            { _ = RecipientReplies.presence($0, into: &box.read.recipient) })
        if let group {
            try await ask(
                { try $0.readMember(app: Self.app, group: group, uid: uid, tag: $1) },
                { RecipientReplies.member($0, into: &box.read.recipient) })
        }
        return box.read
    }

    /// The tokens that a push to this user would really reach: those he has and whose owner he is.
    func reachable(_ uid: String) async throws -> [String] {
        var tokens: [String] = []
        for token in try await recipient(uid).recipient.tokens {
            let isAllowed = try await ask(
                { try $0.owner(app: Self.app, token: token.record.hex, tag: $1) },
                { OwnerReply.allows($0, uid: uid, token: token) })
            if isAllowed { tokens.append(token.record.hex) }
        }
        return tokens.sorted()
    }

    /// The tokens that a message claimed by plain commands goes to: all of them where their owners are known, else those whose
    /// owner the user is; once that is all of them, it is known.
    func pushed(_ uid: String) async throws -> [String] {
        let reign = client?.reign
        let (version, isKnown) = try await ask(
            { try $0.readConversation(app: Self.app, uid: uid, conversation: "c", tag: $1) },
            { reply in
                let version = reply[0].int64 ?? 0
                return (version, KnownOwners.holds(reply[4], version: version, reign: reign))
            })
        let tokens = try await recipient(uid).recipient.tokens.map(\.record.hex).sorted()
        if isKnown { return tokens }
        let reached = try await reachable(uid)
        if reached == tokens, version != 0, let reign {
            _ = try await ask(
                { try $0.noteOwners(app: Self.app, uid: uid, version: version, reign: reign, tag: $1) }, { $0.int64 })
        }
        return reached
    }

    private final class Box {
        var task: UserStateTask
        init(_ task: UserStateTask) { self.task = task }
    }

    private final class RecipientBox {
        var read: Read
        init(_ uid: String) { read = Read(recipient: Recipient(uid: uid)) }
    }
}

/// Hands each reply to whoever asked for it.
private final class Replies: RedisClientDelegate {
    struct Handler {
        /// True when no further reply is expected.
        var take: (borrowing RedisReply) -> Bool
        var fail: (RedisFault) -> Void
    }

    var handlers: [UInt64: Handler] = [:]
    var onReady: (() -> Void)?
    private var last: UInt64 = 0

    func nextTag() -> UInt64 {
        last += 1
        return last
    }

    func redis(_ client: RedisClient, didReply tag: UInt64, reply: borrowing RedisReply) {
        guard let handler = handlers[tag] else { return }
        if handler.take(reply) { handlers[tag] = nil }
    }

    func redis(_ client: RedisClient, didFail tag: UInt64, fault: RedisFault) {
        handlers.removeValue(forKey: tag)?.fail(fault)
    }

    func redis(_ client: RedisClient, didChange state: RedisClient.State) {
        guard state == .ready else { return }
        onReady?()
        onReady = nil
    }
}
