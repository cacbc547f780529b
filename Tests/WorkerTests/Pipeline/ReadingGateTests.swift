// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@testable import Worker

@Suite struct ReadingGateTests {
    private let second: UInt64 = 1_000_000_000

    @Test func aShortStallOnlyWaits() {
        var gate = ReadingGate()
        #expect(gate.admitRecords(hasRoom: true, nowNanos: 0) == true)
        #expect(gate.admitRecords(hasRoom: false, nowNanos: second) == false)
        #expect(gate.isHeld)
        #expect(gate.tick(hasRoom: false, nowNanos: 5 * second) == .none)
        #expect(gate.roomFreed(hasRoom: false) == .none)
        #expect(gate.roomFreed(hasRoom: true) == .poll)
        #expect(!gate.isHeld)
    }

    @Test func aLongStallPausesOnceAndResumesOnce() {
        var gate = ReadingGate()
        _ = gate.admitRecords(hasRoom: false, nowNanos: second)
        #expect(gate.tick(hasRoom: false, nowNanos: 11 * second) == .pauseAndPoll)
        #expect(gate.isPaused && gate.isHeld)
        #expect(gate.admitRecords(hasRoom: false, nowNanos: 12 * second) == true, "polling keeps the membership")
        #expect(gate.tick(hasRoom: false, nowNanos: 12 * second) == .poll)
        #expect(gate.roomFreed(hasRoom: true) == .resumeAndPoll)
        #expect(gate.roomFreed(hasRoom: true) == .none)
        #expect(!gate.isPaused)
    }

    @Test func aTickFindsRoomWithoutASignal() {
        var gate = ReadingGate()
        _ = gate.admitRecords(hasRoom: false, nowNanos: second)
        #expect(gate.tick(hasRoom: true, nowNanos: 2 * second) == .poll)
        #expect(!gate.isHeld)
    }
}

@Suite struct AudienceTests {
    private func all(_ audience: inout Audience) -> [String] {
        var uids: [String] = []
        while let member = audience.pop() { uids.append(member.uid) }
        return uids
    }

    @Test func givenRecipientsComeOnceEach() {
        var audience = Audience(uids: ["a", "b", "a", "c", "b"])
        #expect(all(&audience) == ["a", "b", "c"])
        #expect(audience.cursor == nil && audience.group == nil)
        var one = Audience(uids: ["a"])
        #expect(all(&one) == ["a"])
        var none = Audience(uids: [])
        #expect(all(&none).isEmpty)
    }

    @Test func aScanGoesPageByPageToItsEnd() {
        var audience = Audience(group: "g")
        #expect(audience.isUnread)
        #expect(audience.cursor == 0)
        #expect(audience.pop() == nil)
        audience.take([.init(uid: "a", level: .unset), .init(uid: "b", level: .blocked)], cursor: 17)
        #expect(!audience.isPageDone)
        #expect(all(&audience) == ["a", "b"])
        #expect(audience.isPageDone)
        #expect(audience.cursor == 17)
        #expect(!audience.isEmpty)
        audience.take([.init(uid: "c", level: .unset)], cursor: 0)
        #expect(all(&audience) == ["c"])
        #expect(audience.cursor == nil)
        #expect(audience.isEmpty)
        #expect(!audience.isUnread)
    }

    @Test func theOwnersOfTokensComeOncePageByPage() {
        let tokens = (0..<150).map { "t\($0)" }
        var audience = Audience(tokens: tokens)
        #expect(audience.isUnread && audience.wantsPage && audience.isMany && !audience.hasLevels)
        #expect(audience.tokenPage.map(Array.init) == Array(tokens[..<100]))
        audience.take(owners: (0..<100).map { $0 < 50 ? "a" : "b" })
        #expect(all(&audience) == ["a", "b"])
        #expect(!audience.hasUnownedTokens && !audience.isEmpty && !audience.isUnread)
        #expect(audience.tokenPage.map(Array.init) == Array(tokens[100...]))
        audience.take(owners: ["b", nil] + Array(repeating: "c", count: 48))
        #expect(all(&audience) == ["c"])
        #expect(audience.hasUnownedTokens && audience.isEmpty)
    }

    @Test func anActivitysUsersAreUnreadUntilTheirFirstPage() {
        var audience = Audience(activity: "a")
        #expect(audience.isUnread)
        audience.take(users: ["u"], isLast: false)
        #expect(!audience.isUnread)
        #expect(!Audience(uids: ["u"]).isUnread, "given recipients are not read")
    }

    @Test func aCursorIsValidOnItsServerOnlyAndAnotherServerRestartsTheScan() {
        var audience = Audience(group: "g")
        #expect(audience.beginPage(1) == 0)
        audience.take([.init(uid: "a", level: .unset)], cursor: 17)
        #expect(audience.beginPage(1) == 17)
        #expect(audience.beginPage(2) == 0, "another server's table has other places")
        audience.take([.init(uid: "a", level: .unset)], cursor: 0)
        #expect(audience.beginPage(3) == nil, "the last page was read")
    }

    @Test func anAbandonedAudienceHasNobodyLeft() {
        var audience = Audience(group: "g")
        audience.take([.init(uid: "a", level: .unset), .init(uid: "b", level: .unset)], cursor: 9)
        _ = audience.pop()
        audience.abandon()
        #expect(audience.pop() == nil)
        #expect(audience.cursor == nil)
    }
}
