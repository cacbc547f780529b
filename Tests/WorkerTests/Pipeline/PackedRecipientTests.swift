// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore
import Support
import Testing

@testable import Worker

/// A recipient that only waits for its push, as its record and numbers.
struct PackedRecipientTests {
    /// A recipient of a message whose only push is with the client, and the reference to it; nothing else refers to it.
    private static func waiting(
        _ world: ScriptedShard, _ change: (RecipientJob) -> Void = { _ in }
    ) throws -> WorkRef {
        let event = try world.message("m")
        let job = try world.recipient("u", of: event)
        event.audience.abandon()
        event.openParts -= 1
        event.undecided -= 1
        job.firstDecision = .made
        guard job.machine.decided() else { throw SetupFault("not decided") }
        job.machine.opened(devices: 1)
        job.isCounted = true
        job.readNanos = 5
        job.flags = [.holdsDedupKey, .addsToBadge]
        job.facts = DecisionFacts(rawValue: 6)
        job.settings.language = "de"
        var device = DeviceWork(route: Route(device: "phone", way: .apns(token: 0, copyTo: nil)))
        device.queueKey = DeviceKey.make(app: "im", uid: "u", device: "phone")
        let token = ScriptedShard.token("phone")
        device.enqueue(
            DevicePush(
                token: token, id: job.pushIDPrefix.id(tokenHex: token.record.hex), badge: 7, mayHaveReport: false,
                startedNanos: 9, checkedNanos: 9))
        device.turnCame()
        device.send()
        job.devices = [device]
        job.leaveContent()
        change(job)
        return job.ref
    }

    @Test func aPackedRecipientComesBackAsItWas() throws {
        try ScriptedShard.with { world in
            let ref = try Self.waiting(world)
            let before = try #require(world.work.recipient(ref)).event.ref
            world.work.pack(ref)
            let packed = try #require(world.work.packed(ref))
            #expect(packed.startedNanos == 9 && packed.mayPark)
            #expect(world.work.recipients.count == 1 && world.work.events.count == 1)
            let job = try #require(world.work.recipient(ref))
            #expect(world.work.packed(ref) == nil && world.work.recipient(ref) === job)
            #expect(job.event.ref == before && world.work.event(before) === job.event)
            #expect(job.uid == "u" && job.ref == ref && job.machine == RecipientMachine(openDevices: 1))
            #expect(job.isCounted && job.isDecided && job.readNanos == 5 && job.settings.language == "de")
            #expect(job.flags == [.holdsDedupKey, .addsToBadge] && job.facts.rawValue == 6)
            let device = try #require(job.devices.first)
            let push = try #require(device.push)
            #expect(device.phase == .sent && device.queueKey == DeviceKey.make(app: "im", uid: "u", device: "phone"))
            #expect(push.token == ScriptedShard.token("phone") && push.badge == 7 && !push.mayHaveReport)
            #expect(push.id == job.pushIDPrefix.id(tokenHex: ScriptedShard.token("phone").record.hex))
            let (event, fresh) = (job.event, try world.message("m"))
            #expect(event.id == fresh.id && event.msgID == "m" && event.sentMs == fresh.sentMs)
            #expect(event.expiresAtMs == fresh.expiresAtMs && event.lane == fresh.lane && event.openParts == 1)
            #expect(event.audience.isEmpty && event.content != nil)
            job.leaveContent()
            #expect(event.content == nil)
        }
    }

    private static var more: [(why: String, change: (RecipientJob) -> Void)] {
        [
            ("a claim that Redis refused", { $0.flags.insert(.owesClaim) }),
            ("a hand-back", { $0.flags.insert(.handedBack) }),
            ("a record without its acknowledgement", { $0.machine.recordSent() }),
            ("a second device", { $0.devices.append($0.devices[0]) }),
            ("a push that backs off", { _ = $0.devices[0].backOff() }),
            ("a check", { $0.devices[0].push?.check = SendCheck(awaiting: 1, subject: .push) }),
            ("a merged push", { $0.devices[0].push?.merged = MergedPush(others: [], oldestID: "a") }),
            ("other recipients", { $0.event.openParts += 1 }),
            ("an earlier stay in the topic", { $0.parking = RecipientParking() }),
            ("an event of another owner", { $0.event.isHandedBack = true }),
        ]
    }

    @Test func aRecipientWithMoreToDoStaysAsItIs() throws {
        for (why, change) in Self.more {
            try ScriptedShard.with { world in
                let ref = try Self.waiting(world, change)
                world.work.pack(ref)
                #expect(world.work.packed(ref) == nil, "\(why)")
                #expect(world.work.recipient(ref) != nil)
            }
        }
    }

    @Test func whatSomebodyRefersToIsNotExchanged() throws {
        try ScriptedShard.with { world in
            let ref = try Self.waiting(world)
            let job = try #require(world.work.recipient(ref))
            world.work.pack(ref)
            #expect(world.work.recipient(ref) === job)
        }
        try ScriptedShard.with { world in
            let ref = try Self.waiting(world)
            let event = try #require(world.work.recipient(ref)).event
            world.work.pack(ref)
            #expect(world.work.packed(ref) == nil && world.work.event(event.ref) === event)
            #expect(world.work.recipient(ref)?.event === event)
        }
    }

    @Test(arguments: [1, 2, 20_261_127] as [UInt64]) func textsComeBackFromTheirBytes(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        func text(_ longest: Int) -> String {
            String(repeating: "é", count: Int.random(in: 0...longest, using: &random))
        }
        func maybe(_ longest: Int) -> String? { Bool.random(using: &random) ? text(longest) : nil }
        for _ in 0..<100 {
            let count = Int.random(in: 1...100, using: &random)
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            let record = TokenRecord(
                hex: Hex.string(bytes), environment: .sandbox, topic: text(100), type: .voip, credential: maybe(30),
                contentKey: maybe(30), language: maybe(30), zone: maybe(30), boundMs: 1)
            let (uid, device) = (text(64), text(64))
            let token = BoundToken(device: device, record: record, version: 2)
            let texts = try #require(PackedTexts(uid: uid, device: device, token))
            #expect(texts.tokenHex == record.hex && texts[.uid] == uid && texts[.device] == device)
            #expect(texts[.topic] == record.topic && texts[.credential] == record.credential)
            #expect(texts[.contentKey] == record.contentKey && texts[.language] == record.language)
            #expect(texts[.zone] == record.zone)
        }
    }
}
