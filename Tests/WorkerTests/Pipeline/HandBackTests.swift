import Kafka
import Testing

@testable import Worker

/// What goes to another owner, by a revocation or since the process ends, is not begun here any more.
@Suite(.timeLimit(.minutes(10))) struct HandBackTests {
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
        func intakeDidCommit(_ intake: Intake) {}
        func intakeDidClose(_ intake: Intake) {}
        func intakeDidMeetFatalError(_ intake: Intake) {}
    }

    private static func looks(events count: Int) async throws -> Int {
        try await PipelineWorld.with { pipeline in
            let owner = CountingOwner(pipeline)
            try pipeline.events.start(owner: owner)
            for index in 0..<count {
                let job = try pipeline.read("m\(index)", to: ["u\(index)"], PipelineWorld.origin(1)).job
                pipeline.fanOut.begin(job)
            }
            let partition = TopicPartition(topic: 0, partition: 1)
            let consumer = pipeline.events.consumer
            #expect(pipeline.events.kafka(consumer, willRevoke: [partition], lost: false) == .deferred)
            for _ in 0..<10 where pipeline.events.revocation != nil { pipeline.turn() }
            #expect(pipeline.work.events.count == 0 && pipeline.events.revocation == nil)
            return owner.looks
        }
    }

    @Test func aRevocationLooksOnceForAllThatEndsInATurn() async throws {
        let few = try await Self.looks(events: 50)
        let many = try await Self.looks(events: 200)
        #expect(few <= 4 && many <= 4, "\(few) of 50, \(many) of 200")
    }
}
