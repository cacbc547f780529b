// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Redis
import Support
import Telemetry

/// What a client of a cluster told, kept by tag; on a loop of its own, as a shard holds one.
actor ClusterWorld {
    enum Answer: Sendable, Equatable {
        case number(Int64)
        case text(String)
        case failed(RedisFault)
    }

    final class Recorder: RedisClientDelegate {
        var answers: [UInt64: Answer] = [:]
        /// Tags in the order in which they were told.
        var order: [UInt64] = []
        var doubled = 0
        var onAnswer: ((UInt64) -> Void)?
        var whenReady: (() -> Void)?

        private func take(_ tag: UInt64, _ answer: Answer) {
            if answers.updateValue(answer, forKey: tag) != nil { doubled += 1 }
            order.append(tag)
            onAnswer?(tag)
        }

        func redis(_ client: RedisClient, didReply tag: UInt64, reply: borrowing RedisReply) {
            if reply.kind == .array {
                // Counts of keys: the sum, and the nodes that are away.
                var (sum, away): (Int64, Int) = (0, 0)
                reply.forEachPair { _, keys in if let keys = keys.int64 { sum += keys } else { away += 1 } }
                return take(tag, .text("\(sum) keys, \(away) away"))
            }
            take(tag, reply.int64.map(Answer.number) ?? .text(reply.string ?? ""))
        }

        func redis(_ client: RedisClient, didFail tag: UInt64, fault: RedisFault) { take(tag, .failed(fault)) }

        func redis(_ client: RedisClient, didChange state: RedisClient.State) { whenReady?() }
    }

    nonisolated let loop: Loop
    nonisolated let metrics = MetricsRegistry()
    private(set) var client: RedisClusterClient?
    private(set) var recorder = Recorder()
    private(set) var lastTag: UInt64 = 0

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init() throws(LoopFault) {
        loop = try Loop(name: "cluster-test")
        loop.start()
    }

    func start(_ urls: [String], limits: RedisLimits = ClusterWorld.quick) throws {
        let made = try RedisClusterClient(
            loop: loop, seeds: urls.map { try RedisEndpoint(url: $0) }, limits: limits, metrics: metrics)
        made.delegate = recorder
        client = made
        made.start()
    }

    static var quick: RedisLimits {
        var limits = RedisLimits()
        limits.backoffMinNanos = 5_000_000
        limits.backoffMaxNanos = 100_000_000
        limits.commandTimeoutNanos = 10_000_000_000
        return limits
    }

    /// Waits until every slot is served.
    nonisolated func connect(_ urls: [String], limits: RedisLimits = ClusterWorld.quick) async throws {
        try await start(urls, limits: limits)
        try await until("the cluster was not ready") { $0.client?.isWhole ?? false }
    }

    /// Waits for a fact of this world.
    nonisolated func until(_ why: String, _ isSo: @Sendable (isolated ClusterWorld) -> Bool) async throws {
        let clock = ContinuousClock()
        let deadline = clock.now + Patience.duration
        while clock.now < deadline {
            if await look(isSo) { return }
            try await Task.sleep(for: .milliseconds(5), tolerance: .zero)
        }
        throw SetupFault(why)
    }

    func look<Value: Sendable>(_ body: @Sendable (isolated ClusterWorld) -> Value) -> Value { body(self) }

    /// Sends one command; a refusal counts as its answer.
    @discardableResult
    func send(_ words: [String], order: RedisOrder = .free) -> UInt64 {
        lastTag += 1
        let tag = lastTag
        do throws(RedisFault) {
            try client?.command(tag, order: order) { command in for word in words { command.arg(word) } }
        } catch {
            recorder.answers[tag] = .failed(error)
        }
        return tag
    }

    @discardableResult
    func evaluate(_ script: RedisScript, _ keys: [String]) -> UInt64 {
        lastTag += 1
        let tag = lastTag
        do throws(RedisFault) {
            try client?.evaluate(tag, .other, script, keyCount: keys.count) { command in
                for key in keys { command.arg(key) }
            }
        } catch {
            recorder.answers[tag] = .failed(error)
        }
        return tag
    }

    func countKeys() -> UInt64 {
        lastTag += 1
        do throws(RedisFault) {
            try client?.keyCount(lastTag)
        } catch {
            recorder.answers[lastTag] = .failed(error)
        }
        return lastTag
    }

    /// The process that serves a hash tag.
    func generation(_ name: String) -> UInt32? { client?.generation(ofKey: "{\(name)}") }

    nonisolated func answer(_ tag: UInt64) async throws -> Answer {
        try await until("no answer to \(tag)") { $0.recorder.answers[tag] != nil }
        guard let answer = await look({ $0.recorder.answers[tag] }) else { throw SetupFault("no answer to \(tag)") }
        return answer
    }

    nonisolated func ask(_ words: String...) async throws -> Answer { try await answer(await send(words)) }

    /// A series of the registry, summed over its labels but those that `having` names.
    nonisolated func sum(_ name: String, having: String = "") -> Double {
        String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n")
            .filter { $0.hasPrefix(name + "{") && $0.contains(having) }
            .reduce(0) { $0 + (Double($1.split(separator: " ").last ?? "") ?? 0) }
    }

    isolated deinit {
        client?.close()
        client = nil
        loop.stop()
    }

    func end() {
        client?.close()
        client = nil
    }
}

/// Steps of counters, one after the other per key, each answered before the next of the same key is sent.
///
/// A counter that was answered 1, 2, 3, … has lost and doubled nothing, whichever nodes answered.
actor CounterLoad {
    struct Tally: Sendable {
        /// Steps that were answered with a number.
        var counted = 0
        /// Answers that were more than one more than the last: something ran twice.
        var wrong: [String] = []
        var faults: [String: Int] = [:]
        /// Told out of the order in which they ran.
        var unordered = 0
        /// Steps that were answered and are gone: their master died before it had copied them.
        var lost: Int64 = 0
    }

    /// Two keys of one slot: a cluster that moves them one by one says TRYAGAIN between.
    static let script = RedisScript(
        "#!lua\nredis.call('SET', KEYS[2], 'x')\nreturn redis.call('INCR', KEYS[1])")

    private let world: ClusterWorld
    private var isOver = false
    /// Steps of a counter that may have run: so many numbers may be missing, then or later.
    private var unknown: [String: Int64] = [:]
    private(set) var tally = Tally()

    init(_ world: ClusterWorld) { self.world = world }

    func stop() { isOver = true }

    /// Waits until so many steps have been answered.
    nonisolated func awaitCount(_ count: Int) async throws {
        let clock = ContinuousClock()
        let deadline = clock.now + Patience.duration
        while clock.now < deadline {
            if await tally.counted >= count { return }
            try await Task.sleep(for: .milliseconds(5), tolerance: .zero)
        }
        throw SetupFault("the load stands still")
    }

    /// Bursts of `depth` steps of each counter, until stopped; what fails without having run is tried again.
    func run(_ tags: [String], depth: Int = 5) async throws {
        var last: [String: Int64] = [:]
        while !isOver {
            var sent: [(tag: UInt64, name: String)] = []
            for _ in 0..<depth {
                for name in tags {
                    sent.append((await world.evaluate(Self.script, ["{\(name)}:n", "{\(name)}:x"]), name))
                }
            }
            var answers: [(tag: UInt64, name: String, answer: ClusterWorld.Answer)] = []
            for (tag, name) in sent { answers.append((tag, name, try await world.answer(tag))) }
            let told = await world.look { world in
                defer {
                    world.recorder.order.removeAll()
                    world.recorder.answers.removeAll()
                }
                return world.recorder.order
            }
            let place = Dictionary(told.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
            for name in tags { take(name, answers.filter { $0.name == name }, place, &last) }
        }
    }

    private func take(
        _ name: String, _ answers: [(tag: UInt64, name: String, answer: ClusterWorld.Answer)], _ place: [UInt64: Int],
        _ last: inout [String: Int64]
    ) {
        var before: Int64 = 0
        var numbers: [Int64] = []
        for (tag, _, answer) in answers.sorted(by: { (place[$0.tag] ?? 0) < (place[$1.tag] ?? 0) }) {
            switch answer {
            case .number(let number):
                numbers.append(number)
                if number < before { tally.unordered += 1 }
                before = number
            case .text(let text): tally.wrong.append("\(name) \(tag): \(text)")
            case .failed(let fault):
                tally.faults[fault.code.name, default: 0] += 1
                if fault.mayHaveRun { unknown[name, default: 0] += 1 }
            }
        }
        tally.counted += numbers.count
        numbers.sort()
        for number in numbers {
            let missing = number - (last[name].map { $0 + 1 } ?? number)
            if missing < 0 {
                tally.lost -= missing
            } else if missing <= unknown[name] ?? 0 {
                unknown[name]? -= missing
            } else {
                tally.wrong.append("\(name): \(number) after \(number - missing - 1)")
            }
            last[name] = number
        }
    }
}
