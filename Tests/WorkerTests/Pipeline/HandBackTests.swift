// SPDX-License-Identifier: Apache-2.0
import Kafka
import Support
import Telemetry
import Testing

@testable import Worker

/// What goes to another owner, by a revocation or since the process ends, is not begun here any more.
@Suite(.timeLimit(.minutes(10))) struct HandBackTests {
    private static func parked(_ id: String, partition: Int32) -> ParkedWork {
        ParkedWork(
            ParkedRecord(app: "im", uid: "u\(id)", raw: [], cause: .unavailable, dueMs: 0, writtenMs: 0, id: id),
            of: ParkedBatch(.alone(partition, topic: 1, .parked)))
    }

    /// Lays a record of each of two partitions into each tray between reading and beginning.
    private static func fill(_ pipeline: Pipeline, _ world: ScriptedShard) throws {
        for partition in [Int32(0), 1] {
            pipeline.parking.read(
                Deferred([parked("\(partition)", partition: partition).record]), .alone(partition, topic: 1, .parked))
            let job = try world.message("m\(partition)", origin: .alone(partition))
            pipeline.parking.refused.append((try world.record(of: job), pipeline.intakes.events))
            pipeline.fanOut.behind.append((job, 0))
        }
        pipeline.parking.beginDue(atMost: 9) { _ in true }
    }

    private static func left(_ pipeline: Pipeline) -> [String: [Int32]] {
        var left: [String: [Int32]] = ["due": [], "refused": [], "behind": []]
        pipeline.parking.due.takeAll { left["due"]?.append($0.partition.partition) }
        pipeline.parking.refused.takeAll { left["refused"]?.append($0.record.origin.partition.partition) }
        pipeline.fanOut.behind.takeAll { left["behind"]?.append($0.event.origin?.partition.partition ?? -1) }
        return left
    }

    @Test func parkedWorkInTraysLeavesWithItsPartition() throws {
        let left = try ScriptedShard.withPipeline { world, pipeline in
            try Self.fill(pipeline, world)
            let intakes = pipeline.intakes
            pipeline.intake(intakes.events, handBack: [TopicPartition(topic: 0, partition: 1)], isLost: false)
            pipeline.intake(intakes.userState, handBack: [TopicPartition(topic: 1, partition: 1)], isLost: false)
            return Self.left(pipeline)
        }
        #expect(left == ["due": [0], "refused": [0], "behind": [0]])
    }

    @Test func nothingParkedBeginsOnceTheProcessEnds() throws {
        let left = try ScriptedShard.withPipeline { world, pipeline in
            try Self.fill(pipeline, world)
            pipeline.stopIntake()
            return Self.left(pipeline)
        }
        #expect(left == ["due": [], "refused": [], "behind": []])
    }

    /// A record that waits for the broker when its partition goes, and that the broker never takes.
    @Test func workRefusedAfterItsRevocationIsNotBegun() throws {
        let (left, count) = try ScriptedShard.withPipeline { world, pipeline in
            let record = try world.record(of: try world.message(origin: .alone(1)))
            pipeline.parking.park(record, as: Self.parked("m", partition: 1).record, pipeline.intakes.events)
            pipeline.intake(pipeline.intakes.events, handBack: [TopicPartition(topic: 0, partition: 1)], isLost: false)
            pipeline.parking.didGiveUp(WorkRef(slot: 0, generation: 0))
            return (Self.left(pipeline)["refused"], pipeline.parking.count)
        }
        #expect(left == [] && count == 0)
    }

    // MARK: - A revocation's end

    /// Counts how often it is asked what is in flight: each time all that is in hand may be looked at.
    private final class CountingOwner: IntakeOwner {
        let pipeline: Pipeline
        var looks = 0

        init(_ pipeline: Pipeline) { self.pipeline = pipeline }

        func intake(_ intake: Intake, hasWorkOf partitions: Set<TopicPartition>) -> Bool {
            looks += 1
            return pipeline.intake(intake, hasWorkOf: partitions)
        }

        func intake(_ intake: Intake, handBack partitions: Set<TopicPartition>, isLost: Bool) {
            pipeline.intake(intake, handBack: partitions, isLost: isLost)
        }

        func intakeIsReadable(_ intake: Intake) {}
        func intakeDidAssign(_ intake: Intake) {}
        func intakeDidRestart(_ intake: Intake) {}
        func intakeDidCommit(_ intake: Intake) {}
        func intakeDidLearnCommitted(_ intake: Intake) {}
        func intakeDidClose(_ intake: Intake) {}
        func intakeDidMeetFatalError(_ intake: Intake) {}
    }

    private static func looks(events count: Int) throws -> Int {
        try ScriptedShard.withPipeline { world, pipeline in
            let owner = CountingOwner(pipeline)
            try pipeline.intakes.events.start(owner: owner)
            for index in 0..<count {
                pipeline.fanOut.begin(try world.message("m\(index)", to: ["u\(index)"], origin: .alone(1)))
            }
            let partition = TopicPartition(topic: 0, partition: 1)
            let consumer = pipeline.intakes.events.consumer
            #expect(pipeline.intakes.events.kafka(consumer, willRevoke: [partition], lost: false) == .deferred)
            for _ in 0..<10 where pipeline.intakes.events.revocation != nil { pipeline.turn() }
            #expect(pipeline.work.events.count == 0 && pipeline.intakes.events.revocation == nil)
            return owner.looks
        }
    }

    @Test func aRevocationLooksOnceForAllThatEndsInATurn() throws {
        let few = try Self.looks(events: 50)
        let many = try Self.looks(events: 200)
        #expect(few <= 4 && many <= 4, "\(few) of 50, \(many) of 200")
    }

    // MARK: - Large groups that wait to be divided

    @Test func largeGroupsThatWaitToBeDividedStopTheReading() throws {
        let rooms = try ScriptedShard.withPipeline { world, pipeline in
            func addPlanned(_ count: Int) throws {
                for index in 0..<count {
                    let job = try world.message(to: nil, conversation: "g\(index)")
                    pipeline.fanOut.begin(job)
                    job.plan = ChunkPlan()
                }
            }
            try addPlanned(pipeline.shard.limits.plannedMax - 1)
            let before = pipeline.room.hasSlots
            try addPlanned(1)
            return [before, pipeline.room.hasSlots]
        }
        #expect(rooms == [true, false])
    }

    /// What stays behind is looked for by a hash, whatever the number of conversations.
    @Test func aPassOverWaitingGroupsCostsNoMoreThanTheirNumber() throws {
        try ScriptedShard.withPipeline { world, pipeline in
            func work(_ count: Int) throws -> CountedWork {
                for index in 0..<count {
                    let name = String(repeating: "g", count: 100) + "\(100_000 + index)"
                    let job = try world.message(to: nil, conversation: name)
                    pipeline.fanOut.begin(job)
                    job.plan = ChunkPlan()
                    job.fanOutPhase = .readingPage
                }
                let room = FanOut.Room(isAPNsFree: true, recipients: 100, ofChunks: 0)
                pipeline.fanOut.start(room)
                let counted = CountedWork.of { pipeline.fanOut.start(room) }
                pipeline.fanOut.handBack { _ in true }
                return counted
            }
            let one = try work(250)
            let four = try work(1000)
            #expect((four.instructions ?? 0) <= 6 * max(one.instructions ?? 0, 100_000), "\(one), \(four)")
            #expect(four.bytes <= 6 * max(one.bytes, 16_384), "\(one), \(four)")
        }
    }

    // MARK: - Bad records

    @Test func manyBadRecordsAreFewLines() throws {
        let lines = Guarded<[String]>([])
        let log = Log(level: .warning) { line in lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) } }
        try ScriptedShard.withPipeline(log: log) { _, pipeline in
            for index in 0..<10_000 {
                let why = BadRecord(index.isMultiple(of: 2) ? .wrongType : .missing, "not as it should be")
                pipeline.parkedEvents.reject(
                    RejectedRecord(
                        why: why, origin: .alone(), topic: "im.events", offset: Int64(index), key: nil, value: nil),
                    pipeline.intakes.events)
            }
        }
        let count = lines.withLock { $0.count { $0.contains("dead-letter") } }
        #expect(count == 2, "one per rule: \(count)")
    }
}
