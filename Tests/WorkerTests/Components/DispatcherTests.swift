// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@testable import APNs
@testable import Worker

/// Dispatcher with the parts that it calls and no other: decided recipients and outcomes in; pushes to send, records and ends out.
struct DispatcherTests {
    private struct Parts {
        let dispatcher: Dispatcher
        let sender: Sender
        let recorder: Recorder
        let parking: Parking
    }

    private static func with(_ body: (ScriptedShard, Parts) throws -> Void) throws {
        try ScriptedShard.with { world in
            let (shard, work, parts) = (world.shard, world.work, world.parts)
            let intake = Intake(shard, consumer: parts.userState, classes: [.userState, .parked], batch: 1)
            let parking = Parking(
                shard, outbox: parts.outbox, topic: parts.topics.parked, intake: intake,
                onTheWay: parts.shared.parkedOnTheWay)
            let sender = Sender(
                shard, work, apps: parts.apps, occupancy: nil, index: 0, parked: parking.devices)
            let recorder = Recorder(shard, work, topics: parts.topics, outbox: parts.outbox, results: .all)
            let dispatcher = Dispatcher(
                shard, work, claims: Claims(shard, work), sender: sender, recorder: recorder,
                bursts: Bursts(shard, work), parking: parking)
            world.component = dispatcher
            try body(world, Parts(dispatcher: dispatcher, sender: sender, recorder: recorder, parking: parking))
        }
    }

    /// A claimed recipient whose routes have begun.
    private static func route(_ devices: [String], _ world: ScriptedShard, _ parts: Parts) throws -> RecipientJob {
        let job = try world.recipient()
        try route(job, devices, world, parts)
        return job
    }

    private static func route(
        _ job: RecipientJob, _ devices: [String], _ world: ScriptedShard, _ parts: Parts, accepted: [EarlierPush] = []
    ) throws {
        job.event.audience = Audience(uids: [])
        for device in devices { world.decide(job, pushingTo: device) }
        if devices.count == 2 { world.decide(job, pushingTo: devices[0], devices[1]) }
        job.candidate?.claim = ClaimReply(
            state: accepted.isEmpty ? .fresh : .resume, badge: 4, tokenVersion: 1,
            notes: accepted.isEmpty ? nil : EarlierNotes(accepted: accepted))
        if !accepted.isEmpty { job.firstClaim = .resumed }
        job.candidate?.askedNanos = world.shard.nowNanos
        try world.turn { parts.dispatcher.route(job) }
    }

    private static let accepted = PushOutcome.accepted(apnsID: PushID(high: 1, low: 1))

    private static func end(
        _ job: RecipientJob, _ index: Int, _ outcome: PushOutcome, _ world: ScriptedShard, _ parts: Parts
    ) throws {
        try world.turn {
            parts.dispatcher.didEnd(
                EndedPush(tag: Tag(job.ref, .push, index: index), outcome: outcome, attempts: 1, credential: "default"))
        }
    }

    @Test func eachRouteBecomesAPushWithTheClaimsNumber() throws {
        try Self.with { world, parts in
            let job = try Self.route(["phone", "pad"], world, parts)
            #expect(parts.sender.ready.taken() == [0, 1].map { job.deviceRef($0) })
            #expect(job.devices.map(\.push?.badge) == [4, 4] && job.machine.openDevices == 2)
            #expect(world.redis.commands.isEmpty)
        }
    }

    @Test func anAcceptedPushOfTheOnlyDeviceIsRecordedAndOnlyItsRecordIsAwaited() throws {
        try Self.with { world, parts in
            let job = try Self.route(["phone"], world, parts)
            try Self.end(job, 0, Self.accepted, world, parts)
            #expect(world.results == ["phone accepted ok"] && job.machine.awaitsRecordsOnly)
            #expect(world.settled == [Tag(job.ref, .record)])
            #expect(world.redis.commands.isEmpty, "its mark follows, so that no note is needed")
        }
    }

    @Test func whileAnotherDeviceIsOpenTheMarkNotesTheAcceptedOne() throws {
        try Self.with { world, parts in
            let job = try Self.route(["phone", "pad"], world, parts)
            try Self.end(job, 0, Self.accepted, world, parts)
            #expect(world.redis.commands == ["APPEND c:d1:{im:u}mm", "EXPIRE c:d1:{im:u}mm"])
            #expect(job.machine.openDevices == 1)
        }
    }

    @Test func aDeadTokenIsReportedAndTheRecipientEnds() throws {
        try Self.with { world, parts in
            let job = try Self.route(["phone"], world, parts)
            let outcome = PushOutcome.rejected(
                status: 410, reason: APNsReason(bytes: "Unregistered".utf8), time: .ms(world.shard.nowMs))
            // The owner entry says that it is still this bind.
            world.component = parts.recorder
            try Self.end(job, 0, outcome, world, parts)
            #expect(world.results == ["phone rejected Unregistered"])
            #expect(world.records(\.feedback).count == 1 && job.machine.openDevices == 0)
        }
    }

    /// The phone ended here. Another worker, which had the same record, pushed to both devices and wrote the mark.
    @Test func aRecipientThatAnotherTryFinishesInALaterRoundCountsThatTrysOtherDevices() throws {
        try Self.with { world, parts in
            let job = try world.recipient()
            world.shard.statistics.begin(job.event)
            try Self.route(job, ["phone", "pad"], world, parts)
            try Self.end(job, 0, Self.accepted, world, parts)
            try world.turn {
                parts.dispatcher.devices.park(job, 1, .retryAfter, dueMs: world.shard.steadyMs + 1_000_000)
                parts.dispatcher.ends.decideAgain(job)
                job.candidate?.endedBy = Self.mark(of: job, ["phone", "pad"])
                parts.dispatcher.endDuplicate(job)
                parts.recorder.didSettleRecord(job.ref)
                parts.dispatcher.ends.endIfComplete(job)
            }
            var accepted: UInt32 = 0
            job.event.counted.tally.forEach { if $0.kind == .accepted { accepted += $1 } }
            #expect(accepted == 2)
        }
    }

    private static func mark(of job: RecipientJob, _ devices: [String]) -> MarkCounts? {
        var journal = Journal()
        for device in devices {
            journal.append(Journal.Entry(device: device, verdict: .accepted, reason: "ok", atMs: 1, traits: .counts))
        }
        guard let subject = job.event.counted.subject, let name = job.event.origin?.place.name else { return nil }
        var mark: MarkCounts?
        MarkCounts.write(journal, record: name, subject, .alert, .direct) { bytes in
            var rest = bytes[...]
            mark = MarkCounts.take(&rest)
        }
        return mark
    }

    /// Before this try, or between its rounds. The record of the other try may be lost.
    @Test(arguments: [true, false])
    func aDeviceThatAnotherTryPushedToIsRecordedOnceAndIsDoneInTheParkedRecord(isBefore: Bool) throws {
        try Self.with { world, parts in
            let job = try world.recipient()
            let pad = EarlierPush("pad", PushID(high: 1, low: 1))
            try Self.route(job, ["phone"], world, parts, accepted: isBefore ? [pad] : [])
            if !isBefore {
                try world.turn {
                    parts.dispatcher.ends.decideAgain(job)
                    world.decide(job, pushingTo: "phone")
                    job.candidate?.claim = ClaimReply(
                        state: .resume, badge: 4, tokenVersion: 1, notes: EarlierNotes(accepted: [pad]))
                    parts.dispatcher.route(job)
                }
            }
            #expect(world.results == ["pad accepted ok"])
            try world.turn {
                parts.dispatcher.devices.park(job, 0, .retryAfter, dueMs: world.shard.steadyMs + 1_000_000)
                parts.dispatcher.ends.endIfComplete(job)
            }
            let parked = job.leftWith
            #expect(parked?.journal.endedDevices == ["pad"] && parked?.devices == ["phone"])
        }
    }

    @Test func `a claimed message waits behind an earlier one of its user that was parked whole meanwhile`() throws {
        try Self.with { world, parts in
            let job = try world.recipient()
            job.event.audience = Audience(uids: [])
            world.decide(job, pushingTo: "phone")
            job.candidate?.claim = ClaimReply(state: .fresh, badge: 4, tokenVersion: 1)
            job.readNanos = world.shard.nowNanos
            try world.turn {
                parts.parking.devices.note(
                    DeviceKey.make(app: "im", uid: job.uid, device: ""), dueMs: world.shard.steadyMs + 5_000,
                    of: EventSource(), nowNanos: world.shard.nowNanos)
                #expect(parts.dispatcher.didClaim(job) { _ in .goesOn } == .passed)
            }
            #expect(parts.sender.ready.taken().isEmpty && job.leftWith?.cause == .behind)
        }
    }

    @Test(arguments: [nil, "u"] as [String?])
    func `recipients of one record, or of an event that returned whole, are written again in one record`(uid: String?)
        throws
    {
        try Self.with { world, parts in
            func record(_ uid: String?) -> ParkedRecord {
                var record = ParkedRecord(
                    app: "im", uid: uid, raw: Array("{}".utf8), cause: .unclaimed, dueMs: 0, writtenMs: 0, id: "mm")
                record.facts = [.owesClaim, .accepted]
                return record
            }
            let batch = ParkedBatch(.alone(0, topic: 1, .parked))
            batch.hasSeveral = uid != nil
            var returned = record(uid)
            returned.facts = []
            for number in 0..<3 {
                try world.turn { parts.parking.goOn(ParkedWork(returned, of: batch), [record("u\(number)")]) }
            }
            for _ in 0..<5 { try world.turn { parts.parking.tick() } }
            #expect(world.records(\.parked).count == 1)
        }
    }

    /// Redis refused the note of the earlier one, so no read can find it.
    @Test(
        arguments: [
            (true, 5_000, false, true), (true, 0, true, true), (true, 0, false, false), (false, 5_000, true, false),
        ] as [(Bool, Int64, Bool, Bool)])
    func `a message waits behind earlier parked work of its user whose note Redis refused, as long as that may wait`(
        isRefused: Bool, leftMs: Int64, mayHoldWork: Bool, waits: Bool
    ) throws {
        try Self.with { world, parts in
            parts.parking.devices.note(
                DeviceKey.make(app: "im", uid: "u", device: ""), dueMs: world.shard.steadyMs + leftMs,
                of: EventSource(),
                isRefused: isRefused, nowNanos: world.shard.nowNanos - 1)
            let job = try world.recipient()
            job.readNanos = world.shard.nowNanos
            let dueMs = parts.parking.devices.dueMs(
                DeviceKey.make(app: "im", uid: job.uid, device: ""), before: job, nowMs: world.shard.steadyMs,
                mayHoldWork: mayHoldWork)
            #expect((dueMs != nil) == waits)
        }
    }

    /// No note of the user names a recipient that waits for a desktop: later pushes do not wait for it. A repeat must.
    @Test func theMarkOfARecipientThatWaitsForADesktopSaysThatItIsParked() throws {
        try Self.with { world, parts in
            let job = try Self.route(["phone"], world, parts)
            try world.turn {
                parts.dispatcher.devices.park(job, 0, .desktopFirst, dueMs: world.shard.steadyMs + 1_000_000)
                parts.dispatcher.ends.endIfComplete(job)
            }
            #expect(world.redis.commands.contains("APPEND c:d1:{im:u}mm"))
            #expect(job.leftWith?.cause == .desktopFirst)
        }
    }

    /// The record in the topic stays as it was, and another worker may read it.
    @Test func `the mark of a recipient that parks again says which devices ended since it returned`() throws {
        try Self.with { world, parts in
            var record = ParkedRecord(
                app: "im", uid: "u", raw: [], cause: .behind, dueMs: 0, writtenMs: 0, id: "mm")
            record.journal.append(Journal.Entry(unrecorded: "watch", .suppressed, atMs: 1))
            let work = ParkedWork(record, of: ParkedBatch(.alone(0, topic: 1, .parked)))
            let event = try world.message(
                origin: EventJob.Origin(partition: work.partition, place: work.place, source: record.source),
                parked: work)
            let job = try world.recipient(of: event)
            job.goOn(from: record, steadyMs: 0)
            try Self.route(job, ["phone", "pc"], world, parts)
            let before = world.redis.commands.count { $0.hasPrefix("APPEND") }
            try world.turn {
                parts.dispatcher.devices.end(job, 1, .suppressed, Reason.tokenMoved.rawValue)
                parts.dispatcher.devices.park(job, 0, .retryAfter, dueMs: world.shard.steadyMs + 1_000_000)
                parts.dispatcher.ends.endIfComplete(job)
            }
            #expect(job.leftWith?.journal.endedDevices == ["watch", "pc"])
            #expect(world.redis.commands.count { $0.hasPrefix("APPEND") } == before + 1)
        }
    }

    /// The journal takes the end over from the mark of another try.
    @Test func `a device that ended since its record was written gets nothing more and counts once`() throws {
        try Self.with { world, parts in
            let job = try world.recipient()
            let end = Journal.Entry(
                device: "pc", verdict: .suppressed, reason: "no_token", atMs: 5, traits: [.counts, .isTraced])
            world.decide(job, pushingTo: "phone", "pc")
            job.candidate?.claim = ClaimReply(
                state: .resume, badge: 4, tokenVersion: 1, notes: EarlierNotes(closed: ["pc"], ends: [end]))
            try world.turn { parts.dispatcher.route(job) }
            #expect(job.devices.map(\.route.device) == ["phone"] && job.journal.entries == [end])
            #expect(job.flags.contains(.failed) && world.results.isEmpty)
        }
    }

    /// Both began together. When the first was decided, the device was still to be left alone; when the second was read, no more.
    /// Of two partitions neither waits: what a burst keeps would wait for the other's work in turn, without end.
    /// A new message of the device may be parked between the two.
    @Test(arguments: [Int32(0), 1], [false, true])
    func `a returned push waits behind an earlier one of its device and partition that was parked again`(
        other: Int32, hasNewOne: Bool
    ) throws {
        try Self.with { world, parts in
            let jobs = try [60, 40].enumerated().map { number, leftMs in
                var record = ParkedRecord(
                    app: "im", uid: "u", raw: [], cause: .behind, dueMs: world.shard.steadyMs,
                    writtenMs: world.shard.steadyMs, id: "mm\(number)")
                record.devices = ["phone"]
                record.come(from: EventSource(partition: number == 0 ? 0 : other, offset: Int64(number)))
                let work = ParkedWork(record, of: ParkedBatch(.alone(0, topic: 1, .parked)))
                let event = try world.message(
                    "m\(number)",
                    origin: EventJob.Origin(partition: work.partition, place: work.place, source: record.source),
                    parked: work)
                event.begunNanos = world.shard.nowNanos
                let job = try world.recipient(of: event)
                job.candidate?.recipient.parked = [
                    (
                        "phone",
                        ParkedNote(
                            dueMs: world.shard.nowMs + Int64(leftMs), writtenMs: world.shard.nowMs,
                            untilMs: world.shard.nowMs + 60_000)
                    )
                ]
                return job
            }
            for job in jobs {
                try Self.route(job, ["phone"], world, parts)
                if !hasNewOne || job !== jobs.first { continue }
                parts.parking.devices.note(
                    job.deviceKey(0), dueMs: world.shard.steadyMs, of: EventSource(partition: 0, offset: 2),
                    nowNanos: world.shard.nowNanos)
            }
            #expect(parts.sender.ready.taken().count == Int(other))
            #expect(jobs.map { $0.leftWith?.devices } == [["phone"], other == 0 ? ["phone"] : nil])
        }
    }

    @Test func `a silent connection that was pushed in a later round has one record`() throws {
        try Self.with { world, parts in
            let job = try world.recipient()
            job.silentConnections = [.init(device: "phone", epoch: 1)]
            try Self.route(job, ["phone"], world, parts)
            // Its push is noted in the mark at once, so that nothing of the device is kept.
            job.flags.insert(.partitionGoes)
            try Self.end(job, 0, Self.accepted, world, parts)
            try world.turn {
                parts.recorder.sealIfEnded(job)
                parts.dispatcher.ends.endIfComplete(job)
            }
            #expect(world.results == ["phone accepted ok"])
        }
    }

    @Test func aSecondAnswerForADeviceChangesNothing() throws {
        try Self.with { world, parts in
            let job = try Self.route(["phone"], world, parts)
            for _ in 0..<2 { try Self.end(job, 0, Self.accepted, world, parts) }
            #expect(world.results == ["phone accepted ok"])
        }
    }
}
