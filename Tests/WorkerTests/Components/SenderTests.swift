// SPDX-License-Identifier: Apache-2.0
import PushCore
import SimulatedFleet
import Simulator
import Testing

@testable import Worker

/// Sender alone: a route in; checks and pushes out, outcomes back.
struct SenderTests {
    private static func with(
        isAPNsAway: Bool = false, _ body: (ScriptedShard, Sender) throws -> Void
    ) throws {
        try ScriptedShard.with { world in
            if isAPNsAway { world.apns.end() }
            let sender = Sender(
                world.shard, world.work, apps: world.parts.apps, occupancy: nil, index: 0, parked: ParkedDevices())
            world.component = sender
            try world.turn { sender.start() }
            // Its connection is ready by then.
            world.pass(.seconds(1))
            try body(world, sender)
        }
    }

    /// A recipient with a chosen route.
    private static func recipient(_ id: String, _ world: ScriptedShard) throws -> RecipientJob {
        let job = try world.recipient(of: try world.message(id))
        job.devices = [DeviceWork(route: Route(device: "phone", way: .apns(token: 0, copyTo: nil)))]
        return job
    }

    private static func enqueue(_ job: RecipientJob, _ sender: Sender, badge: Int64, claimedNanos: UInt64) {
        sender.enqueue(job, 0, to: ScriptedShard.token("phone"), badge: badge, claimedNanos: claimedNanos)
    }

    /// One turn of what the pipeline does with ready pushes.
    private static func makeReady(_ sender: Sender, _ world: ScriptedShard) throws {
        try world.turn {
            for device in sender.ready.taken() { sender.make(device) }
            sender.sendMade()
        }
    }

    /// The same, and time for the answers.
    private static func send(_ sender: Sender, _ world: ScriptedShard) throws {
        try makeReady(sender, world)
        world.pass(.milliseconds(200))
    }

    private static func badges(_ world: ScriptedShard) -> [Int] {
        world.apns.requests.map { request in
            let text = String(decoding: request.payload, as: UTF8.self)
            guard let place = text.firstRange(of: "\"badge\":") else { return -1 }
            return Int(text[place.upperBound...].prefix { $0.isNumber }) ?? -1
        }
    }

    @Test func aPushThatDoesNotWaitLeavesWithoutACheck() throws {
        try Self.with { world, sender in
            let job = try Self.recipient("m", world)
            try world.turn { Self.enqueue(job, sender, badge: 2, claimedNanos: world.shard.nowNanos) }
            try Self.send(sender, world)
            #expect(world.redis.commands.isEmpty && Self.badges(world) == [2])
            let outcomes = sender.outcomes.taken()
            #expect(outcomes.count == 1 && outcomes.first?.tag.ref == job.ref)
        }
    }

    @Test func aDeviceHasOnePushInFlight() throws {
        try Self.with { world, sender in
            let jobs = try ["m1", "m2"].map { try Self.recipient($0, world) }
            try world.turn {
                for job in jobs { Self.enqueue(job, sender, badge: 1, claimedNanos: world.shard.nowNanos) }
            }
            #expect(jobs.map(\.devices[0].phase) == [.due, .queued])
            try Self.send(sender, world)
            #expect(world.apns.requests.count == 1)
            try world.turn { sender.leaveQueue(jobs[0].devices[0].queueKey) }
            #expect(jobs[1].devices[0].phase == .due)
        }
    }

    @Test func aPushThatWaitedIsClaimedAgainAndGetsTheNewNumber() throws {
        try Self.with { world, sender in
            let job = try Self.recipient("m", world)
            try world.turn { Self.enqueue(job, sender, badge: 2, claimedNanos: 0) }
            try Self.send(sender, world)
            #expect(world.redis.commands.count == 2 && world.redis.commands.first == "claim c:d1:{im:u}mm")
            #expect(world.apns.requests.isEmpty)
            // Resumed, with five unread messages.
            world.answer(
                .array([.integer(1), .integer(5), .integer(1)]), ScriptedShard.owner())
            try Self.send(sender, world)
            #expect(Self.badges(world) == [5])
        }
    }

    @Test func aBadgeUpdateThatWaitsForRoomIsNeverParked() throws {
        try Self.with(isAPNsAway: true) { world, sender in
            let app = try #require(world.parts.apps.first)
            let client = try #require(app.clients.first)
            let jobs = try ["m1", "m2"].map { try Self.recipient($0, world) }
            try world.turn { Self.enqueue(jobs[0], sender, badge: 1, claimedNanos: world.shard.nowNanos) }
            try Self.send(sender, world)
            let update = BadgeUpdate(app: app, uid: "u", eventID: "read")
            world.work.insert(update)
            client.stalled = [update.deviceRef(0), jobs[1].deviceRef(0)]
            try world.turn { sender.parkWhatWaits(nil) }
            world.pass(.seconds(4))
            try world.turn { sender.parkWhatWaits(nil) }
            #expect(client.stalled == [update.deviceRef(0)])
            #expect(sender.unsent.taken().map(\.device) == [jobs[1].deviceRef(0)])
        }
    }

    @Test func aTokenOfAnotherUserGetsNothing() throws {
        try Self.with { world, sender in
            let job = try Self.recipient("m", world)
            try world.turn { Self.enqueue(job, sender, badge: 2, claimedNanos: 0) }
            try Self.send(sender, world)
            world.answer(
                .array([.integer(1), .integer(5), .integer(1)]),
                ScriptedShard.owner("somebody"))
            let unsent = sender.unsent.taken()
            #expect(unsent.count == 1 && world.apns.requests.isEmpty)
            guard case .check(.stop(let reason))? = unsent.first?.cause else {
                Issue.record("it was not stopped: \(unsent)")
                return
            }
            #expect(reason == .tokenMoved)
        }
    }

    // MARK: `limits.background_per_hour`

    /// A push of this kind, about to be made by an app with a limit.
    private static func withPush(
        isSilent: Bool, limit: Int = 2, waitsAgain: Bool = false,
        _ body: (ScriptedShard, Sender, RecipientJob) throws -> Void
    ) throws {
        try with { world, sender in
            for app in world.parts.apps { app.backgroundPerHour = limit }
            let job = try world.recipient(of: try world.message("m", isSilent: isSilent))
            job.devices = [DeviceWork(route: Route(device: "phone", way: .apns(token: 0, copyTo: nil)))]
            if waitsAgain {
                job.parking = RecipientParking()
                job.parking?.returned = ["phone"]
            }
            try world.turn { enqueue(job, sender, badge: 1, claimedNanos: world.shard.nowNanos) }
            try makeReady(sender, world)
            try body(world, sender, job)
        }
    }

    @Test(arguments: [(true, 0), (false, 2)])
    func `only a background push of an app with a limit asks`(isSilent: Bool, limit: Int) throws {
        try Self.withPush(isSilent: isSilent, limit: limit) { world, _, _ in
            world.pass(.milliseconds(200))
            #expect(world.redis.open.isEmpty && world.apns.requests.count == 1)
        }
    }

    @Test func `a background push asks for a place and then leaves`() throws {
        try Self.withPush(isSilent: true, waitsAgain: true) { world, sender, job in
            #expect(world.redis.commands == ["script c:f:{im:u}"] && world.apns.requests.isEmpty)
            let words = try #require(world.redis.open.first)
            #expect([words[4], words[5], words[9]] == ["phone", "2", "1"])
            world.answer(.integer(0))
            try Self.makeReady(sender, world)
            world.pass(.milliseconds(200))
            #expect(world.apns.requests.count == 1 && job.devices[0].phase == .sent)
        }
    }

    @Test(arguments: [(5_000, 1), (-1, 2)])
    func `a background push without a place is parked, and a merged one ends`(answer: Int, kind: Int) throws {
        try Self.withPush(isSilent: true) { world, sender, _ in
            let nowMs = world.shard.steadyMs
            world.answer(.integer(answer))
            let causes = sender.unsent.taken().map(\.cause)
            switch causes.first {
            case .park(.background, let dueMs, nil)?: #expect(kind == 1 && (4_900...5_500).contains(dueMs - nowMs))
            case .check(.stop(.coalesced))?: #expect(kind == 2)
            default: Issue.record("\(causes)")
            }
            #expect(causes.count == 1 && world.apns.requests.isEmpty)
        }
    }

    /// A record that the topic does not take cannot wait there.
    @Test func `a background push that cannot be parked goes`() throws {
        try Self.withPush(isSilent: true) { world, sender, job in
            job.flags.insert(.staysInMemory)
            world.answer(.integer(5_000))
            try Self.makeReady(sender, world)
            world.pass(.milliseconds(200))
            #expect(world.apns.requests.count == 1)
        }
    }

    @Test(arguments: ["OOM full", "WRONGTYPE no hash", "READONLY replica"])
    func `a background push that Redis cannot count goes`(fault: String) throws {
        try Self.withPush(isSilent: true) { world, sender, _ in
            world.answer(.error(fault))
            try Self.makeReady(sender, world)
            world.pass(.milliseconds(200))
            #expect(world.apns.requests.count == 1)
        }
    }

    @Test func `a background push waits for a Redis that does not answer, and is checked again`() throws {
        try Self.withPush(isSilent: true) { world, sender, job in
            world.answer(.error("LOADING data"))
            world.pass(.seconds(1))
            #expect(sender.unsent.taken().isEmpty && world.apns.requests.isEmpty && job.devices[0].phase == .due)
        }
    }
}
