// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
public import JSON
public import LocalServers
import Processes
import Recording
public import Simulator
public import Worker

/// Runs a recorded world once and collects the result of every event.
public struct DemoRun: Sendable {
    public let cluster: LocalCluster
    private let worldFile: [UInt8]
    private let state: [[UInt8]]
    private let events: [[UInt8]]
    /// Accepts that some records are unsettled after a minute, instead of reporting a fault.
    private let isPatient: Bool

    /// The answer for tokens that begin with `dead`, as Apple gives it for an uninstalled app.
    public static func deadTokens(nowMs: Int64) -> Scenario {
        let json = """
            {"rules": [{"match": {"token": "dead"},
            "answer": {"status": 410, "reason": "Unregistered", "timestamp": \(nowMs)}}]}
            """
        return (try? Scenario(json: Array(json.utf8))) ?? Scenario()
    }

    public init(
        cluster: LocalCluster, worldFile: [UInt8], state: [[UInt8]], events: [[UInt8]], isPatient: Bool = false
    ) {
        self.isPatient = isPatient
        self.cluster = cluster
        self.worldFile = worldFile
        self.state = state
        self.events = events
    }

    /// Fills Redis and both topics, and waits until every record is settled.
    ///
    /// - Parameter progress: settled and sent records, a few times per second.
    public func play(
        worker: WorkerProcess, progress: @Sendable (_ settled: Int, _ of: Int) -> Void
    ) async throws -> [EventOutcome] {
        let nowMs = Loop.wallMs()
        for command in try WorldFile(worldFile).commands(nowMs: nowMs) {
            let answer = try cluster.redis.command(command)
            if answer.hasPrefix("-") { throw SetupFault("redis-server: \(answer)") }
        }
        guard let shift = TimeShift(newestOf: events, nowMs: nowMs) else {
            throw SetupFault("no event has a sent_ms")
        }
        let topics = Configuration.Topics()
        try await cluster.produce(state.map { Self.record(shift.apply(to: $0), key: "uid") }, to: topics.userState)
        try await settle(worker, state.count, of: state.count + events.count, progress)
        let shifted = events.map { shift.apply(to: $0) }
        // Kafka guarantees no order between conversations, but a story needs one. So each line waits until the previous
        // one was read.
        for (index, line) in shifted.enumerated() {
            try await cluster.produce([Self.record(line, key: nil)], to: topics.events)
            try await takeUp(worker, state.count + index + 1)
        }
        try await settle(worker, state.count + events.count, of: state.count + events.count, progress)
        return try await outcomes(of: shifted)
    }

    private static func record(_ line: [UInt8], key: String?) -> LocalCluster.Record {
        let tree = try? JSONTree(parsing: line)
        let text = key.flatMap { tree?[$0]?.string } ?? tree?["conv"]?["id"]?.string
        return LocalCluster.Record(key: text.map { Array($0.utf8) }, value: line)
    }

    private func settle(
        _ worker: WorkerProcess, _ count: Int, of total: Int, _ progress: @Sendable (Int, Int) -> Void
    ) async throws {
        // The longest wait is an ack's deadline of eight seconds.
        for _ in 0..<600 {
            let settled = await cluster.progress(of: [worker], isSettled: true)
            progress(settled, total)
            if settled >= count { return }
            try await Task.sleep(for: .milliseconds(100), tolerance: .zero)
        }
        if isPatient, count == total { return }
        throw SetupFault("the worker did not settle every record within a minute")
    }

    /// Waits until the worker has read `count` records. Most settle soon after; some wait for an ack.
    private func takeUp(_ worker: WorkerProcess, _ count: Int) async throws {
        for _ in 0..<6000 {
            if await cluster.progress(of: [worker], isSettled: false) >= count { return }
            try await Task.sleep(for: .milliseconds(5), tolerance: .zero)
        }
        throw SetupFault("the worker did not read a record within half a minute")
    }

    private func outcomes(of lines: [[UInt8]]) async throws -> [EventOutcome] {
        let topics = Configuration.Topics()
        var pushes: [String: LedgerEntry] = [:]
        for entry in await cluster.simulator.entries { pushes[entry.apnsID] = entry }
        let results = try values(of: topics.results)
        let deliveries = try values(of: topics.deliveries)
        let sms = try values(of: topics.sms)
        let letters = try cluster.records(of: topics.deadLetter)
        return lines.map { line in
            let tree = try? JSONTree(parsing: line)
            var outcome = EventOutcome(event: tree ?? .null)
            let id = tree?["event_id"]?.string
            for letter in letters where letter.value == line { outcome.deadLetter = letter.headers["carillon-error"] }
            outcome.results = results.filter { $0["event_id"]?.string == id }.map { result in
                EventOutcome.Device(result, push: result["apns_id"]?.string.flatMap { pushes[$0] })
            }
            outcome.deliveries = deliveries.filter { $0["event"]?["event_id"]?.string == id }.flatMap {
                $0["to"]?.array ?? []
            }
            outcome.wantsSMS = sms.contains { $0["event_id"]?.string == id }
            return outcome
        }
    }

    private func values(of topic: String) throws -> [JSONTree] {
        try cluster.records(of: topic).compactMap { $0.value.flatMap { try? JSONTree(parsing: $0) } }
    }
}

/// The result of one event.
public struct EventOutcome: Sendable {
    public var event: JSONTree
    /// The reason of its dead letter; nil if there is none.
    public var deadLetter: String?
    public var results: [Device] = []
    /// Devices that got it by long connection.
    public var deliveries: [JSONTree] = []
    public var wantsSMS = false

    init(event: JSONTree) {
        self.event = event
    }

    /// One record of `push.results`, and its push.
    public struct Device: Sendable {
        public var result: JSONTree
        public var payload: JSONTree?

        init(_ result: JSONTree, push: LedgerEntry?) {
            self.result = result
            payload = push.flatMap { try? JSONTree(parsing: $0.payload) }
        }

        public var uid: String { result["uid"]?.string ?? "" }
        public var device: String? { result["device"]?.string }
        public var verdict: String { result["verdict"]?.string ?? "" }
        public var reason: String { result["reason"]?.string ?? "" }
    }
}
