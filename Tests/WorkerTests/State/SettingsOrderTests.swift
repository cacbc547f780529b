import PushCore
import Support
import Testing

@testable import Worker

/// `settings` and `mute`: the record that was sent last stands, in whatever order they come.
@Suite(.timeLimit(.minutes(10)))
struct SettingsOrderTests {
    @Test func aLateRecordChangesOnlyWhatNobodyHasSetSince() async throws {
        let world = try StateWorld()
        try await world.connect()
        var change = UserState.SettingsChange()
        change.dndOn = true
        change.dndStart = 60
        change.dndEnd = 120
        change.language = "en"
        #expect(try await world.change("u", .settings(change), at: 20) == .applied(.none))
        var late = UserState.SettingsChange()
        late.dndOn = false
        late.holdSeconds = 30
        #expect(try await world.change("u", .settings(late), at: 10) == .applied(.none))
        var settings = try await world.recipient("u").recipient.settings
        #expect(settings.dnd == .init(on: true, start: 60, end: 120))
        #expect(settings.holdSeconds == 30 && settings.language == "en")
        #expect(try await world.change("u", .settings(late), at: 10) == .ignored(.stale))
        #expect(try await world.change("u", .settings(late), at: 21) == .applied(.none))
        settings = try await world.recipient("u").recipient.settings
        #expect(settings.dnd?.on == false)
        await world.end()
    }

    @Test func aPhoneIsKeptUntilItIsCleared() async throws {
        let world = try StateWorld()
        try await world.connect()
        func say(_ phone: String?, at ms: Int64) async throws -> String? {
            var change = UserState.SettingsChange()
            change.phone = phone
            change.showDetail = false
            try await world.change("u", .settings(change), at: ms)
            return try await world.recipient("u").recipient.settings.phone
        }
        #expect(try await say(nil, at: 1) == nil)
        #expect(try await say("+49 30 1", at: 2) == "+49 30 1")
        #expect(try await say(nil, at: 3) == "+49 30 1")
        #expect(try await say("+49 30 0", at: 1) == "+49 30 1")
        #expect(try await say("", at: 4) == nil)
        await world.end()
    }

    @Test func anOlderMuteNeverComesBackAfterItsEnd() async throws {
        let world = try StateWorld()
        try await world.connect()
        let muted = UserState.Change.mute(conversation: "c", level: .blocked, untilMs: nil)
        let unmuted = UserState.Change.mute(conversation: "c", level: .unset, untilMs: nil)
        #expect(try await world.change("u", unmuted, at: 20) == .applied(.none))
        #expect(try await world.change("u", muted, at: 10) == .ignored(.stale))
        #expect(try await world.recipient("u").recipient.mute?.level == .unset)
        #expect(try await world.change("u", muted, at: 21) == .applied(.none))
        #expect(try await world.change("u", unmuted, at: 20) == .ignored(.stale))
        #expect(try await world.recipient("u").recipient.mute == .init(level: .blocked))
        await world.end()
    }

    /// Times are drawn from five instants, so that many records are of the same one.
    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func anyOrderWithRepeatsLeavesTheSame(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let world = try StateWorld()
        try await world.connect()
        let records = (0..<12).map { _ in Self.record(&random) }
        var expected: Recipient?
        for order in 0..<5 {
            let again = records.filter { _ in Bool.random(using: &random) }
            for record in (records + again).shuffled(using: &random) {
                try await world.change("u\(order)", record.change, at: record.at)
            }
            let found = try await world.recipient("u\(order)", conversation: "c").recipient
            let first = expected ?? found
            expected = first
            #expect(found.settings == first.settings && found.mute == first.mute, "seed \(seed) \(records)")
        }
        await world.end()
    }

    private static func record(_ random: inout SeededGenerator) -> (change: UserState.Change, at: Int64) {
        let at = Int64.random(in: 0..<5, using: &random)
        if Bool.random(using: &random) {
            let level = MuteLevel.allCases.randomElement(using: &random) ?? .unset
            return (.mute(conversation: "c", level: level, untilMs: Bool.random(using: &random) ? at + 9 : nil), at)
        }
        var change = UserState.SettingsChange()
        if Bool.random(using: &random) { change.dndOn = Bool.random(using: &random) }
        if Bool.random(using: &random) { change.dndStart = .random(in: 0..<1440, using: &random) }
        if Bool.random(using: &random) { change.dndEnd = .random(in: 0..<1440, using: &random) }
        if Bool.random(using: &random) { change.showDetail = Bool.random(using: &random) }
        if Bool.random(using: &random) { change.holdSeconds = .random(in: 0...600, using: &random) }
        if Bool.random(using: &random) { change.language = ["en", "zh-Hans", "de"].randomElement(using: &random) }
        return (.settings(change), at)
    }
}
