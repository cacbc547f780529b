// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@testable import Worker

/// Recorder alone: outcomes in; records and marks out.
struct RecorderTests {
    private static func with(
        _ results: Configuration.Results = .all, _ body: (ScriptedShard, Recorder) throws -> Void
    ) throws {
        try ScriptedShard.with { world in
            let parts = world.parts
            let recorder = Recorder(
                world.shard, world.work, topics: parts.topics, outbox: parts.outbox, results: results)
            world.component = recorder
            try body(world, recorder)
        }
    }

    /// A recipient without open devices.
    private static func ended(_ world: ScriptedShard) throws -> RecipientJob {
        let job = try world.recipient()
        _ = job.machine.decided()
        return job
    }

    @Test func theMarkFollowsTheBrokersAnswer() throws {
        try Self.with { world, recorder in
            let job = try Self.ended(world)
            try world.turn {
                recorder.write(OutcomeRecord(uid: "u", device: "phone", verdict: .accepted, reason: .ok), of: job)
                recorder.sealIfEnded(job)
            }
            #expect(world.results == ["phone accepted ok"] && world.redis.commands.isEmpty)
            #expect(recorder.acknowledged.isEmpty)
            try world.turn { recorder.didSettleRecord(job.ref) }
            #expect(recorder.acknowledged.taken().count == 1)
            _ = job.machine.next(areDeliveriesSettled: true)
            try world.turn { recorder.mark(job) }
            #expect(world.redis.commands == ["SET c:d1:{im:u}mm"])
            world.answer(.status)
            #expect(recorder.marked.taken().count == 1)
        }
    }

    @Test func aMarkThatRedisRefusesIsOwed() throws {
        try Self.with { world, recorder in
            let job = try Self.ended(world)
            _ = job.machine.next(areDeliveriesSettled: true)
            try world.turn { recorder.mark(job) }
            world.answer(.error("OOM command not allowed"))
            #expect(recorder.marked.isEmpty)
            try world.turn { recorder.mark(job) }
            #expect(world.redis.commands.isEmpty && world.records(\.parked).count == 1)
        }
    }

    /// One shard reads both: the part of a chunk is in the key of its deferred work.
    @Test(arguments: [nil, [MemberPage.Member(uid: "u", level: .unset)]])
    func `an owed claim has the key of its event's deferred work`(members: [MemberPage.Member]?) throws {
        try Self.with { world, recorder in
            let event = try world.message(to: ["u", "v"], members: members)
            let job = try world.recipient(of: event)
            _ = job.machine.decided()
            _ = job.machine.next(areDeliveriesSettled: true)
            job.oweMark()
            try world.turn { recorder.mark(job) }
            #expect(world.records(\.parked).count == 1)
            #expect(world.keys(\.parked) == [members == nil ? "imc" : "imc#0"])
        }
    }

    @Test func withResultsOfFailuresOnlyAnAcceptedPushHasNoRecord() throws {
        try Self.with(.failures) { world, recorder in
            let job = try Self.ended(world)
            try world.turn {
                recorder.write(OutcomeRecord(uid: "u", device: "phone", verdict: .accepted, reason: .ok), of: job)
                recorder.write(OutcomeRecord(uid: "u", device: "pad", verdict: .expired, reason: .expired), of: job)
            }
            #expect(world.results == ["pad expired expired"])
        }
    }

    @Test func targetsOfOneGatewayAreOneRecord() throws {
        try Self.with { world, recorder in
            let event = try world.message(to: ["u", "v"])
            for uid in ["u", "v"] {
                let job = try world.recipient(uid, of: event)
                let target = DeliveryTarget(
                    uid: uid, device: "web", connectionEpoch: 1, alert: true, pushed: false, ackByMs: nil)
                try world.turn { recorder.deliver(target, gateway: "g1", of: job) }
            }
            event.undecided = 0
            event.audience = Audience(uids: [])
            try world.turn { recorder.flushDeliveries(of: event) }
            #expect(world.records(\.deliveries).count == 1)
            #expect(world.settled == [Tag(event.ref, .delivery)])
        }
    }

    @Test func eachOfManyGatewaysGetsOneRecord() throws {
        try Self.with { world, recorder in
            let event = try world.message(to: ["u"])
            let job = try world.recipient("u", of: event)
            try world.turn {
                for turn in 0..<3 {
                    for gateway in 0..<300 {
                        let target = DeliveryTarget(
                            uid: "u", device: "web\(turn)", connectionEpoch: 1, alert: true, pushed: false, ackByMs: nil
                        )
                        recorder.deliver(target, gateway: "g\(gateway)", of: job)
                    }
                }
            }
            event.undecided = 0
            event.audience = Audience(uids: [])
            try world.turn { recorder.flushDeliveries(of: event) }
            #expect(world.records(\.deliveries).count == 300)
            #expect(event.unackedDeliveries == 300 && !event.hasUnsentDeliveries)
        }
    }

    @Test func deliveriesOnTheWayToTheBrokerAreBoundedByBytes() throws {
        try Self.with { world, recorder in
            let event = try world.message(to: ["u"], content: String(repeating: "x", count: 500_000))
            let job = try world.recipient("u", of: event)
            event.undecided = 0
            event.audience = Audience(uids: [])
            try world.turn {
                for gateway in 0..<40 {
                    let target = DeliveryTarget(
                        uid: "u", device: "web", connectionEpoch: 1, alert: true, pushed: false, ackByMs: nil)
                    recorder.deliver(target, gateway: "g\(gateway)", of: job)
                }
                recorder.flushDeliveries(of: event)
            }
            #expect(event.unackedDeliveries == 17 && event.hasUnsentDeliveries && !event.areDeliveriesSettled)
            for _ in 0..<17 { _ = recorder.didSettleDelivery(event) }
            #expect(event.unackedDeliveries == 17 && event.hasUnsentDeliveries)
            for _ in 0..<23 { _ = recorder.didSettleDelivery(event) }
            #expect(event.areDeliveriesSettled)
        }
    }
}
