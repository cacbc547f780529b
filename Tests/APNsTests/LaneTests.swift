// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import APNs

@Suite struct LaneTests {
    func push(_ tag: UInt64, _ lane: PushLane) throws -> Push {
        Push(
            tag: tag, token: try #require(DeviceToken("ab")), headers: try PushHeaders(topic: "a.b", pushType: .alert),
            id: PushID(high: 0, low: tag), payload: [123, 125], lane: lane)
    }

    @Test func busyLanesGetTheirShares() {
        var turns = LaneTurns()
        var count: [PushLane: Int] = [:]
        for _ in 0..<1000 {
            if let lane = turns.next(busy: 0b11111) { count[lane, default: 0] += 1 }
        }
        same(count, [.urgent: 100, .direct: 450, .group: 250, .bulk: 150, .silent: 50])
    }

    @Test func sharesThatAreSetAreKept() {
        var shares = LaneShares()
        for lane in PushLane.allCases { shares[lane] = 1 }
        shares[.bulk] = 4
        var turns = LaneTurns(shares)
        var count: [PushLane: Int] = [:]
        for _ in 0..<800 {
            if let lane = turns.next(busy: 0b11111) { count[lane, default: 0] += 1 }
        }
        same(count, [.urgent: 100, .direct: 100, .group: 100, .bulk: 400, .silent: 100])
        same(shares.part(of: 100, for: .bulk), 50)
        same(shares.part(of: Int.max, for: .bulk) > Int.max / 3, true)
        shares[.direct] = 0
        shares[.silent] = 1000
        same([shares.direct, shares.silent], [1, 100])
    }

    @Test func idleSharesAreLent() {
        var turns = LaneTurns()
        var count: [PushLane: Int] = [:]
        for _ in 0..<600 {
            if let lane = turns.next(busy: 0b01010) { count[lane, default: 0] += 1 }
        }
        same(count, [.direct: 450, .bulk: 150])
        same(turns.next(busy: 0b10000), .silent)
        same(turns.next(busy: 0), nil)
    }

    @Test func lowerLaneIsServedWithinOneRound() {
        var turns = LaneTurns()
        // A message that comes while a giant group drains waits for three pushes at most.
        for _ in 0..<1000 { _ = turns.next(busy: 0b01000) }
        var before = 0
        while turns.next(busy: 0b01010) != .direct { before += 1 }
        #expect(before <= 3, "\(before)")
    }

    @Test func lowerLanesLeaveRoomForThoseAbove() throws {
        var table = PushTable(capacity: 10)
        var taken: [PushLane: Int] = [:]
        for lane in [PushLane.bulk, .group, .direct] {
            for tag in 0..<10 {
                let slot = table.admit(try push(UInt64(tag), lane))
                if slot != nil { taken[lane, default: 0] += 1 }
            }
        }
        same(taken, [.bulk: 8, .group: 1, .direct: 1])
        same(table.isFull, true)
    }

    @Test func suspectsWaitApart() throws {
        var table = PushTable(capacity: 10)
        let suspect = try #require(table.admitForTest(try push(1, .direct), .suspect))
        same(table.nextWaiting(.main), nil)
        same(table.suspectCount, 1)
        let other = try #require(table.admitForTest(try push(2, .direct), .main))
        same(table.nextWaiting(.main), other)
        same(table.nextWaiting(.suspect), suspect)
        table.submitted(suspect, stream: 1, connection: 1, nowNanos: 1)
        table.requeue(suspect)
        same(table.suspectCount, 1)
        same(table.waitingCount, 2)
    }

    @Test func suspectsThatAreStuckLeaveThreeQuartersToOthers() throws {
        var table = PushTable(capacity: 12)
        for tag in 0..<3 { #expect(table.admit(try push(UInt64(tag), .direct), route: .suspect) != nil) }
        same(table.admit(try push(4, .direct), route: .suspect), nil)
        for tag in 5..<14 { #expect(table.admit(try push(UInt64(tag), .direct)) != nil) }
        same(table.waitingCount(.suspect), 3)
        same(table.waitingCount(.main), 9)
        same(table.isFull, true)
    }

    @Test func refusedTokensAreRememberedAndForgotten() throws {
        var refused = TokenMemory(places: 4096)
        let token = try #require(DeviceToken(String(repeating: "a1", count: 32)))
        let other = try #require(DeviceToken(String(repeating: "a1", count: 31) + "a2"))
        #expect(!refused.contains(token, nowSeconds: 5))
        refused.insert(token, nowSeconds: 5)
        refused.insert(token, nowSeconds: 6)
        same(refused.count, 1)
        #expect(refused.contains(token, nowSeconds: 100) && !refused.contains(other, nowSeconds: 100))
        #expect(!refused.contains(token, nowSeconds: 6 + 24 * 3600))
        refused.remove(other)
        refused.remove(token)
        #expect(refused.isEmpty && !refused.contains(token, nowSeconds: 7))
    }
}

extension PushTable {
    mutating func admitForTest(_ push: Push, _ route: Route) -> Slot? { admit(push, route: route) }
}
