// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Testing

@testable import APNs

@Suite struct PushTableTests {
    func push(_ tag: UInt64, expiresAtMs: Int64 = .max) throws -> Push {
        Push(
            tag: tag, token: try #require(DeviceToken("ab")), headers: try PushHeaders(topic: "a.b", pushType: .alert),
            id: PushID(high: 0, low: tag), payload: [123, 125], expiresAtMs: expiresAtMs)
    }

    @Test func fullTableRefuses() throws {
        var table = PushTable(capacity: 2)
        let first = try table.mustAdmit(try push(1))
        _ = table.admit(try push(2))
        let third = table.admit(try push(3))
        #expect(third == nil && table.isFull)
        same(table.remove(first), 1)
        let again = table.admit(try push(4))
        #expect(again != nil)
    }

    @Test func waitingKeepsOrderAndRequeuedComesFirst() throws {
        var table = PushTable(capacity: 10)
        let slots = try (1...3).map { try table.mustAdmit(try push($0)) }
        table.submitted(slots[0], stream: 1, connection: 0, nowNanos: 5)
        same(table.anyWaiting(.main), slots[1])
        same(table.oldestInFlight, slots[0])
        same(table[slots[0]].history.attempts, 1)
        table.requeue(slots[0])
        same(table.anyWaiting(.main), slots[0])
        same(table.inFlightCount, 0)
        same(table.waitingCount, 3)
    }

    @Test func delayedComeBackWhenDue() throws {
        var table = PushTable(capacity: 10)
        let slots = try (1...4).map { try table.mustAdmit(try push($0)) }
        for (slot, due) in zip(slots, [40, 10, 30, 20] as [UInt64]) { table.delay(slot, dueNanos: due) }
        same(table.nextDueNanos, 10)
        same(table.waitingCount, 0)
        _ = table.remove(slots[3])
        same(table.wakeDue(nowNanos: 9), 0)
        same(table.wakeDue(nowNanos: 30), 2)
        same(table.anyWaiting(.main), slots[1])
        same(table.nextDueNanos, 40)
    }

    @Test func expiredAreFoundWhereTheyWait() throws {
        var table = PushTable(capacity: 10)
        let waiting = try table.mustAdmit(try push(1, expiresAtMs: 100))
        let delayed = try table.mustAdmit(try push(2, expiresAtMs: 100))
        let flying = try table.mustAdmit(try push(3, expiresAtMs: 100))
        _ = table.admit(try push(4, expiresAtMs: 200))
        table.delay(delayed, dueNanos: 1000)
        table.submitted(flying, stream: 1, connection: 0, nowNanos: 1)
        #expect(table.expired(nowMs: 99).isEmpty)
        same(Set(table.expired(nowMs: 100)), [waiting, delayed])
        let ticket = table.check(waiting)
        same(Set(table.expired(nowMs: 100)), [waiting, delayed])
        _ = table.remove(waiting)
        same(table.slot(of: ticket), nil)
    }

    @Test func ticketNamesOneCheckOfOnePush() throws {
        var table = PushTable(capacity: 10)
        let slot = try table.mustAdmit(try push(1))
        let first = table.check(slot)
        same(table.slot(of: first), slot)
        same(table.checkingCount, 1)
        same(table.waitingCount, 0)
        table.putBack(slot, checkDueNanos: 7)
        same(table[slot].checkDueNanos, 7)
        same(table.slot(of: first), nil)
        let second = table.check(slot)
        same(table.slot(of: first), nil)
        same(table.remove(slot), 1)
        let other = try table.mustAdmit(try push(2))
        same(other, slot)
        _ = table.check(other)
        same(table.slot(of: second), nil)
    }

    @Test(arguments: [1, 2, 3] as [UInt64]) func pushesPutBackStandInTheirOldOrder(seed: UInt64) throws {
        var random = SmallRandom(seed: seed)
        var table = PushTable(capacity: 100)
        let slots = try (1...100).map { try table.mustAdmit(try push($0)) }
        let asked = slots.prefix(40)
        for slot in asked { _ = table.check(slot) }
        for slot in asked.shuffled(using: &random) { table.putBack(slot, checkDueNanos: .max) }
        var order: [UInt64] = []
        while let slot = table.nextWaiting(.main) { order.append(table.remove(slot)) }
        same(order, Array(1...100), "seed \(seed)")
    }

    /// Against a plain model: every push is in one place, and leaves once.
    @Test(arguments: [1, 2, 3, 4, 5] as [UInt64]) func agreesWithAModel(seed: UInt64) throws {
        var random = SmallRandom(seed: seed)
        var table = PushTable(capacity: 64)
        var places: [PushTable.Slot: PushTable.Place] = [:]
        var left: Set<UInt64> = []
        for step in 0..<20_000 {
            let slot = places.keys.sorted().randomElement(using: &random)
            switch Int.random(in: 0..<8, using: &random) {
            case 0, 1:
                let admitted = table.admit(try push(UInt64(step)))
                #expect((admitted == nil) == (places.count == 64), "seed \(seed)")
                if let admitted { places[admitted] = .waiting }
            case 2:
                guard let slot, places[slot] == .waiting else { continue }
                table.submitted(slot, stream: Int32(step), connection: 0, nowNanos: UInt64(step))
                places[slot] = .inFlight
            case 3:
                guard let slot else { continue }
                table.requeue(slot)
                places[slot] = .waiting
            case 4:
                guard let slot else { continue }
                table.delay(slot, dueNanos: UInt64.random(in: 0..<100, using: &random))
                places[slot] = .delayed
            case 5:
                guard let slot, places[slot] == .waiting else { continue }
                same(table.slot(of: table.check(slot)), slot, "seed \(seed)")
                places[slot] = .checking
            case 6:
                guard let slot, places[slot] == .checking else { continue }
                table.putBack(slot, checkDueNanos: 0)
                places[slot] = .waiting
            default:
                guard let slot else { continue }
                let tag = table.remove(slot)
                #expect(left.insert(tag).inserted, "seed \(seed)")
                places[slot] = nil
            }
            same(table.count, places.count, "seed \(seed)")
            same(table.delayedCount, places.values.count { $0 == .delayed }, "seed \(seed)")
            same(table.checkingCount, places.values.count { $0 == .checking }, "seed \(seed)")
            same(table.inFlightCount, places.values.count { $0 == .inFlight }, "seed \(seed)")
        }
    }
}

extension PushTable {
    struct Refused: Error {}

    mutating func mustAdmit(_ push: Push) throws -> Slot {
        guard let slot = admit(push) else { throw Refused() }
        return slot
    }
}
