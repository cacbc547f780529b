// SPDX-License-Identifier: Apache-2.0
import JSON
import Kafka
import Testing
import VirtualStage
import Worker

/// What brokers refuse, and what they give twice.
@Suite struct RepeatedReadTests {
    /// 29: TOPIC_AUTHORIZATION_FAILED.
    @Test func refusedRecordsAreShownAndWrittenOnceTheyAreTaken() throws {
        try Stage.with { stage in
            let crowd = Crowd(name: "refused", count: 10)
            let topic = Configuration.Topics().results
            try stage.play(state: crowd.binds)
            try stage.writeEvents(crowd.messages)
            // Results leave a tenth of a second after the pushes.
            stage.kafka.refuse(topic, code: 29)
            try until("/readyz shows it") {
                let page = try stage.page("/readyz")
                return page.status == 200 && page.text.contains("kafka: degraded: refuses records of ")
            }
            #expect(try stage.logText().contains("the broker refused a record; it is sent again"))
            stage.kafka.refuse(topic, code: nil)
            try stage.settle()
            #expect(try stage.look().results.count == crowd.count)
        }
    }

    /// A group whose offsets were lost reads everything again: nothing is pushed or written a second time.
    @Test func anotherWorkerThatReadsTheSameRecordsAgainDoesNothing() throws {
        try Stage.with(.oneShard) { stage in
            let crowd = Crowd(name: "again", count: 200)
            var events = crowd.messages
            events.append(.message("again-x", to: ["again-0", "again-1", "nobody"], conv: "c-again-x"))
            events.append(.revoke("again-r", of: "again-2-m", to: "again-2"))
            try stage.play(state: crowd.binds, events: events)
            let before = try stage.look()
            #expect(try stage.stop(stage.worker))
            let repeated = try stage.startWorker(group: "carillon-again")
            try until("all is read again") { repeated.settled >= crowd.count + events.count }
            let after = try stage.look()
            #expect(after.results.count == before.results.count)
            #expect(after.pushes.count == before.pushes.count && after.doubled.isEmpty)
            // The badge goes on where it stood.
            try stage.writeEvents([.message("again-z", to: ["again-0"])])
            try until("the next message is out") {
                !(try stage.look()).outcomes(of: "again-z").isEmpty
            }
            #expect(try stage.look().outcomes(of: "again-z") == ["again-0/phone accepted ok 3"])
        }
    }
}
