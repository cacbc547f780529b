import PushCore
import Testing

@testable import Worker

@Suite struct IntakeTests {
    private let second: UInt64 = 1_000_000_000

    @Test func aShortStallOnlyWaits() {
        var intake = Intake()
        #expect(intake.wantsRecords(hasRoom: true, nowNanos: 0) == true)
        #expect(intake.wantsRecords(hasRoom: false, nowNanos: second) == false)
        #expect(intake.isHeld)
        #expect(intake.tick(hasRoom: false, nowNanos: 5 * second) == .none)
        #expect(intake.roomFreed(hasRoom: false) == .none)
        #expect(intake.roomFreed(hasRoom: true) == .poll)
        #expect(!intake.isHeld)
    }

    @Test func aLongStallPausesOnceAndResumesOnce() {
        var intake = Intake()
        _ = intake.wantsRecords(hasRoom: false, nowNanos: second)
        #expect(intake.tick(hasRoom: false, nowNanos: 11 * second) == .pauseAndPoll)
        #expect(intake.isPaused && intake.isHeld)
        #expect(intake.wantsRecords(hasRoom: false, nowNanos: 12 * second) == true, "polling keeps the membership")
        #expect(intake.tick(hasRoom: false, nowNanos: 12 * second) == .poll)
        #expect(intake.roomFreed(hasRoom: true) == .resumeAndPoll)
        #expect(intake.roomFreed(hasRoom: true) == .none)
        #expect(!intake.isPaused)
    }

    @Test func aTickFindsRoomThatNobodyTold() {
        var intake = Intake()
        _ = intake.wantsRecords(hasRoom: false, nowNanos: second)
        #expect(intake.tick(hasRoom: true, nowNanos: 2 * second) == .poll)
        #expect(!intake.isHeld)
    }

    @Test func aClosingIntakeNeverResumes() {
        var intake = Intake()
        _ = intake.wantsRecords(hasRoom: false, nowNanos: second)
        intake.isClosing = true
        #expect(intake.roomFreed(hasRoom: true) == .none)
        #expect(intake.wantsRecords(hasRoom: false, nowNanos: 2 * second) == true, "the group's news is still heard")
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

    @Test func anAbandonedAudienceHasNobodyLeft() {
        var audience = Audience(group: "g")
        audience.take([.init(uid: "a", level: .unset), .init(uid: "b", level: .unset)], cursor: 9)
        _ = audience.pop()
        audience.abandon()
        #expect(audience.pop() == nil)
        #expect(audience.cursor == nil)
    }
}
