// SPDX-License-Identifier: Apache-2.0
import PushCore
import SimulatedFleet
import Support
import Testing

@testable import Worker

/// What a push holds of memory while nothing answers at APNs' address.
@Suite(.serialized) struct HeldPushTests {
    private static let word = String(repeating: "Are we still meeting at seven? ", count: 6)

    @Test func aPushThatAPNsCannotTakeHoldsFewBytes() throws {
        try ScriptedShard.with { world in
            world.apns.end()
            let sender = Sender(
                world.shard, world.work, apps: world.parts.apps, occupancy: nil, index: 0, parked: ParkedDevices())
            let claims = Claims(world.shard, world.work)
            world.component = sender
            try world.turn { sender.start() }
            world.pass(.seconds(1))
            // Tables double: between two doublings each push has its share of them.
            try Self.hold(0..<2_048, sender, claims, world)
            let counted = try CountedWork.of { try Self.hold(2_048..<4_096, sender, claims, world) }
            let each = Double(counted.heldBytes) / 2_048
            print("a held push: \(each) bytes")
            #expect(try each <= Limits.limit("bytes: a held push"))
        }
    }

    private static func hold(
        _ numbers: Range<Int>, _ sender: Sender, _ claims: Claims, _ world: ScriptedShard
    ) throws {
        for number in numbers {
            try world.turn {
                try enqueue(number, sender, claims, world)
                for device in sender.ready.taken() { sender.make(device) }
                sender.sendMade()
            }
        }
    }

    private static func enqueue(
        _ number: Int, _ sender: Sender, _ claims: Claims, _ world: ScriptedShard
    ) throws {
        let uid = "user-\(number)"
        let event = try world.message("0190aa7e-0000-7000-8000-\(100_000 + number)", to: [uid], content: word)
        let job = try world.recipient(uid, of: event)
        event.audience.abandon()
        event.openParts -= 1
        event.undecided -= 1
        job.firstDecision = .made
        guard claims.takeKey(job) == .goesOn, job.machine.decided() else { throw SetupFault("not decided") }
        job.machine.opened(devices: 1)
        job.devices = [DeviceWork(route: Route(device: "phone", way: .apns(token: 0, copyTo: nil)))]
        sender.enqueue(
            job, 0, to: ScriptedShard.token("phone"), badge: 1, claimedNanos: world.shard.nowNanos)
    }
}
