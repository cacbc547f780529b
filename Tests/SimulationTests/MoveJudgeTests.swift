// SPDX-License-Identifier: Apache-2.0
import Kafka
import KafkaModel
import SimulatedFleet
import Testing

@testable import Simulation

/// Rules for a move to another Kafka cluster.
@Suite("The judge of moves to another cluster")
struct MoveJudgeTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let violations: Int
        let change: @Sendable (inout History) -> Void

        init(_ name: String, _ violations: Int, _ change: @escaping @Sendable (inout History) -> Void = { _ in }) {
            testDescription = name
            self.violations = violations
            self.change = change
        }
    }

    /// A move at 10 s, in seconds.
    struct History {
        var knewCluster = true
        var isRestored = false
        var lines: [(text: String, at: UInt64)] = [(MoveJudgeTests.other, 13), (MoveJudgeTests.again, 14)]
        var pushes: [UInt64] = [9, 15]
        /// The time of a second move.
        var nextAt: UInt64?
        var mayBeOlder = false
        /// When Redis began to refuse writes, and when it took them again.
        var refusal: (from: UInt64, to: UInt64)?
        /// The workers end before the second move.
        var stopsAt: UInt64?

        var violations: Int {
            var judge = MoveJudge()
            func nanos(_ seconds: UInt64) -> UInt64 { seconds * 1_000_000_000 }
            judge.didMove(nanos(10), knewCluster: knewCluster)
            if isRestored { judge.didRestore(knewCluster: knewCluster) }
            judge.didStart(nanos(12))
            for line in lines { judge.didSay(line.text, nanos(line.at)) }
            if let refusal {
                judge.redisChanged(takesWrites: false, nanos(refusal.from))
                judge.redisChanged(takesWrites: true, nanos(refusal.to))
            }
            if let stopsAt { judge.didStop(nanos(stopsAt)) }
            if let nextAt { judge.didMove(nanos(nextAt), knewCluster: false) }
            judge.finish(pushes: pushes.map(nanos), mayBeOlder: mayBeOlder)
            return judge.violations.count
        }
    }

    private static let other = "Redis has the user state of another Kafka cluster or topic: nothing is decided"
    private static let older = "Redis returned with older data: nothing is decided"
    private static let again = "Redis has its data again, or the loss was accepted: reading resumed"

    @Test(arguments: rows)
    func `a worker says that the cluster is another one, and pushes nothing before all is applied`(
        row: Row
    ) {
        var history = History()
        row.change(&history)
        #expect(history.violations == row.violations)
    }

    private static let rows = [
        Row("as it must be", 0),
        Row("nobody says it, and pushes leave", 2) { $0.lines = [] },
        Row("a push leaves too early", 1) { $0.pushes = [13] },
        Row("Redis knew nothing of the former cluster", 0) { ($0.knewCluster, $0.lines) = (false, []) },
        Row("older data is claimed", 1) { $0.lines.append((older, 13)) },
        Row("older data is claimed of a backup", 0) {
            $0.lines.append((older, 13))
            $0.isRestored = true
        },
        Row("older data is claimed after a fault of Redis", 0) {
            $0.lines.append((older, 13))
            $0.mayBeOlder = true
        },
        Row("the workers ended before they could say it", 0) {
            ($0.lines, $0.pushes, $0.nextAt) = ([], [30], 13)
        },
        Row("the workers had the time to say it", 1) { ($0.lines, $0.pushes, $0.nextAt) = ([], [], 40) },
        Row("the workers ended long before the second move", 0) {
            ($0.lines, $0.pushes, $0.nextAt, $0.stopsAt) = ([], [], 40, 16)
        },
        Row("Redis took writes only for moments while they ran", 0) {
            ($0.lines, $0.pushes, $0.nextAt, $0.refusal) = ([], [], 40, (16, 36))
        },
        Row("a push leaves while Redis takes no writes", 1) {
            ($0.lines, $0.pushes, $0.nextAt, $0.refusal) = ([], [20], 40, (16, 36))
        },
        Row("Redis took writes for long before it refused them", 1) {
            ($0.lines, $0.pushes, $0.nextAt, $0.refusal) = ([], [], 40, (17, 39))
        },
        Row("Redis took writes again for long", 1) {
            ($0.lines, $0.pushes, $0.nextAt, $0.refusal) = ([], [], 40, (11, 35))
        },
    ]

    @Test func `after a move a commit is judged by the offsets of the mirror`() {
        func event(_ number: Int, at offset: Int64) -> Sent {
            Sent(
                kind: .message, app: "im", eventID: "e\(number)", messageID: "m\(number)", conversation: "c",
                seq: Int64(number), recipients: ["u1"], atNanos: 1, sentMs: 1, partition: 0, offset: offset)
        }
        var observed = Observed()
        observed.outcomes = [
            Observed.Outcome(
                atNanos: 1, eventID: "e1", uid: "u1", device: "", verdict: "accepted", reason: "", pid: "", badge: nil)
        ]
        var judge = CommitJudge()
        judge.didCommit(
            "im.events", 0, 501, sent: [event(1, at: 500), event(2, at: 501)], states: [], observed)
        judge.didMove()
        let moved = [event(1, at: 0), event(2, at: 1), event(3, at: 2)]
        judge.didCommit("im.events", 0, 1, sent: moved, states: [], observed)
        #expect(judge.violations.isEmpty)
        judge.didCommit("im.events", 0, 2, sent: moved, states: [], observed)
        #expect(judge.violations.map(\.message) == ["m2"])
    }

    @Test func `a mirror has the records at other offsets, without its lag, and the translated place`() {
        let kafka = KafkaModel(nowNanos: { 0 }, random: { 0 })
        kafka.createTopic("events", partitions: 1)
        kafka.skipOffsets("events", 0, count: 100)
        for number in 0..<6 { kafka.append(ModelRecord(key: nil, value: [UInt8(number)]), to: "events", 0) }
        kafka.setCommitted("g", "events", 0, offset: 104, metadata: [1])
        var mirror = Mirror(clusterID: "mirror")
        mirror.firstOffset = { _, _ in 7 }
        mirror.missingCount = { _, _ in 1 }
        mirror.lag = { _, _ in 2 }
        let log = mirror.takePlace(of: kafka, topics: ["events"], group: "g")["events"]?.first
        #expect(log?.offsets == [100: 7, 101: 8, 102: 9, 103: 10, 104: 11])
        #expect(log?.missing.map(\.value) == [[5]])
        #expect(kafka.range("events", 0) == 7..<12 && kafka.records("events", 0).map(\.value) == (0..<5).map { [$0] })
        #expect(kafka.committed("g", "events", 0).map { [$0.offset ?? -1, Int64($0.metadata.count)] } == [9, 1])
        #expect(kafka.settings.clusterID == "mirror")
    }
}
