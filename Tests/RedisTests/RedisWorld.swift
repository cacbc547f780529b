// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Redis
import Support
import Telemetry

/// What a client told its delegate.
enum RedisFact: Sendable, Equatable {
    case reply(UInt64, String)
    case failed(UInt64, RedisFault)
    case state(RedisClient.State)
}

/// A client on a loop of its own, as a shard holds one; what it hears goes to `facts` and into a tally per tag.
actor RedisWorld {
    final class Recorder: RedisClientDelegate {
        let facts: Facts<RedisFact>
        /// Answers per tag, where a test counts instead of reading.
        var tally: [UInt8] = []
        var answered = 0
        var failures: [RedisFault.Code: Int] = [:]
        var lastTag: UInt64?
        var isInOrder = true
        var onReply: ((RedisClient, UInt64) -> Void)?

        init(_ facts: Facts<RedisFact>) { self.facts = facts }

        func redis(_ client: RedisClient, didReply tag: UInt64, reply: borrowing RedisReply) {
            if tally.isEmpty { facts.record(.reply(tag, reply.text)) } else { count(tag) }
            onReply?(client, tag)
        }

        func redis(_ client: RedisClient, didFail tag: UInt64, fault: RedisFault) {
            if tally.isEmpty { return facts.record(.failed(tag, fault)) }
            failures[fault.code, default: 0] += 1
            count(tag)
        }

        func redis(_ client: RedisClient, didChange state: RedisClient.State) { facts.record(.state(state)) }

        private func count(_ tag: UInt64) {
            if let lastTag, tag <= lastTag { isInOrder = false }
            lastTag = tag
            if tag < UInt64(tally.count) { tally[Int(tag)] &+= 1 }
            answered += 1
            if answered == tally.count { facts.record(.reply(.max, "all")) }
        }
    }

    nonisolated let loop: Loop
    nonisolated let facts = Facts<RedisFact>()
    nonisolated let metrics = MetricsRegistry()
    private(set) var client: RedisClient?
    private(set) var recorder: Recorder?

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init() throws(LoopFault) {
        loop = try Loop(name: "redis-test")
        loop.start()
    }

    static var quick: RedisLimits {
        var limits = RedisLimits()
        limits.backoffMinNanos = 5_000_000
        limits.backoffMaxNanos = 50_000_000
        limits.connectTimeoutNanos = 10_000_000_000
        limits.commandTimeoutNanos = 60_000_000_000
        return limits
    }

    func start(_ url: String, limits: RedisLimits = RedisWorld.quick) throws {
        try start(try RedisEndpoint(url: url), limits: limits)
    }

    func start(_ endpoint: RedisEndpoint, limits: RedisLimits = RedisWorld.quick) throws {
        let client = try RedisClient(loop: loop, endpoint: endpoint, limits: limits, metrics: metrics)
        let recorder = Recorder(facts)
        client.delegate = recorder
        self.recorder = recorder
        self.client = client
        client.start()
    }

    /// A client of the master that Sentinels name.
    func start(_ sentinels: RedisSentinels, limits: RedisLimits) throws {
        guard
            case .single(let client) = try RedisServers(
                loop: loop, .sentinel(sentinels), limits: limits, metrics: metrics)
        else { return }
        let recorder = Recorder(facts)
        client.delegate = recorder
        self.recorder = recorder
        self.client = client
        client.start()
    }

    /// Starts a client and waits until it takes commands.
    nonisolated func connect(_ url: String, limits: RedisLimits = RedisWorld.quick) async throws {
        try await start(url, limits: limits)
        try await ready()
    }

    nonisolated func ready() async throws { _ = try await facts.first { $0 == .state(.ready) } }

    func send(_ tag: UInt64, _ words: String...) throws {
        try client?.command(tag) { command in
            for word in words { command.arg(word) }
        }
    }

    func evaluate(_ tag: UInt64, _ script: RedisScript, _ keys: [String], _ args: [String]) throws {
        try client?.evaluate(
            tag, .other, script, keys: keys.map { Array($0.utf8) }, args: args.map { Array($0.utf8) })
    }

    func with<Value: Sendable>(_ body: @Sendable (RedisClient, Recorder) throws -> Value) rethrows -> Value? {
        guard let client, let recorder else { return nil }
        return try body(client, recorder)
    }

    /// The reply to `tag` as text; a failure throws.
    nonisolated func reply(_ tag: UInt64) async throws -> String {
        switch try await answer(tag) {
        case .reply(_, let text): return text
        case .failed(_, let fault): throw fault
        case .state: return ""
        }
    }

    /// What `tag` was told, either way.
    nonisolated func answer(_ tag: UInt64) async throws -> RedisFact {
        try await facts.first { fact in
            switch fact {
            case .reply(let other, _), .failed(let other, _): other == tag
            case .state: false
            }
        }
    }

    nonisolated func waiting() async throws -> RedisFault {
        let fact = try await facts.first { fact in
            if case .state(.waiting) = fact { true } else { false }
        }
        guard case .state(.waiting(let fault)) = fact else { throw SetupFault("not waiting") }
        return fault
    }

    /// Runs on the loop, whichever thread lets go last and however the test ended; so the loop ends here and not before.
    isolated deinit {
        release()
        loop.stop()
    }

    /// Lets go of the client.
    func end() { release() }

    private func release() {
        client?.close()
        client = nil
        recorder = nil
    }
}
