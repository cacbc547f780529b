// SPDX-License-Identifier: Apache-2.0
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
        #expect(try await world.change("u", .settings(late), at: 9) == .ignored(.stale))
        #expect(try await world.change("u", .settings(late), at: 21) == .applied(.none))
        settings = try await world.recipient("u").recipient.settings
        #expect(settings.dnd?.on == false)
        await world.end()
    }

    /// Its answer was lost, or a worker reads the record again.
    @Test func aChangeThatIsStoredIsKnown() async throws {
        let world = try StateWorld()
        try await world.connect()
        var settings = UserState.SettingsChange()
        (settings.language, settings.holdSeconds) = ("en", 30)
        let base = StateWorld.base
        let changes: [UserState.Change] = [
            .settings(settings), .mute(conversation: "c", level: .blocked, untilMs: nil),
            .mute(conversation: "d", level: .mentionsOfMe, untilMs: base + 900),
            .badgeReport(device: "d1", value: 7, clientMs: base + 10),
            .read(conversation: "c", upTo: .init(seq: 5)), .read(conversation: "d", upTo: .init(ms: base + 4)),
        ]
        for change in changes {
            let first = try await world.change("u", change, at: 10)
            guard case .applied = first else { throw SetupFault("\(change): \(String(describing: first))") }
            #expect(try await world.change("u", change, at: 10) == .repeated, "\(change)")
        }
        settings.language = "de"
        try await world.change("u", .settings(settings), at: 20)
        settings.holdSeconds = nil
        // A part of it stands, or none.
        #expect(try await world.change("u", .settings(settings), at: 20) == .repeated)
        #expect(try await world.change("u", changes[0], at: 10) == .ignored(.stale))
        // Of the same time, and less.
        let less: [UserState.Change] = [
            .mute(conversation: "c", level: .unset, untilMs: nil),
            .badgeReport(device: "d1", value: 6, clientMs: base + 10), .read(conversation: "c", upTo: .init(seq: 4)),
        ]
        for change in less { #expect(try await world.change("u", change, at: 10) == .ignored(.stale), "\(change)") }
        await world.end()
    }

    /// The cause of a refusal, or nil where the change is taken.
    private func fault(_ outcome: StateOutcome?) -> DNDWindow.Fault? {
        if case .refused(let fault) = outcome { fault } else { nil }
    }

    @Test func dndWithoutAWindowIsRefusedUntilOneIsStored() async throws {
        let world = try StateWorld()
        try await world.connect()
        var on = UserState.SettingsChange()
        on.dndOn = true
        on.language = "en"
        #expect(fault(try await world.change("u", .settings(on), at: 1)) == .noStart)
        #expect(try await world.recipient("u").recipient.settings == UserSettings())
        on.dndStart = 60
        #expect(fault(try await world.change("u", .settings(on), at: 2)) == .noEnd)
        var window = UserState.SettingsChange()
        (window.dndStart, window.dndEnd) = (60, 120)
        #expect(try await world.change("u", .settings(window), at: 3) == .applied(.none))
        on.dndStart = nil
        #expect(try await world.change("u", .settings(on), at: 4) == .applied(.none))
        var equal = UserState.SettingsChange()
        equal.dndStart = 120
        #expect(fault(try await world.change("u", .settings(equal), at: 5)) == .sameEnds)
        equal = UserState.SettingsChange()
        equal.dndEnd = 60
        // Also of the same millisecond, in which the larger text of a field stays.
        for ms in [6, 3] as [Int64] {
            #expect(fault(try await world.change("u", .settings(equal), at: ms)) == .sameEnds, "\(ms)")
        }
        #expect(try await world.recipient("u").recipient.settings.dnd == .init(on: true, start: 60, end: 120))
        await world.end()
    }

    @Test func theLaterFormOfTheWindowsReplacesTheEarlier() async throws {
        let world = try StateWorld()
        try await world.connect()
        var single = UserState.SettingsChange()
        (single.dndOn, single.dndStart, single.dndEnd, single.dndDays) = (true, 60, 120, .init(day: 1))
        var several = UserState.SettingsChange()
        several.dndWindows = [DNDWindow(start: 1, end: 2), DNDWindow(start: 5, end: 3, days: .init(day: 7))]
        try await world.change("u", .settings(single), at: 1)
        try await world.change("u", .settings(several), at: 2)
        #expect(try await world.recipient("u").recipient.settings.dnd?.windows == several.dndWindows)
        try await world.change("u", .settings(single), at: 3)
        let window = DNDWindow(start: 60, end: 120, days: .init(day: 1))
        #expect(try await world.recipient("u").recipient.settings.dnd?.windows == [window])
        try await world.change("u", .settings(several), at: 4)
        var part = UserState.SettingsChange()
        part.dndStart = 9
        #expect(fault(try await world.change("u", .settings(part), at: 5)) == .noEnd)
        await world.end()
    }

    /// Stored by a worker that took any time.
    @Test func aStoredTimeInTheFutureYieldsToTheNext() async throws {
        let world = try StateWorld()
        try await world.connect()
        let far = StateWorld.base + 31_536_000_000
        try await world.raw("HSET", "c:u:{im:u}", "la", "\(far) de")
        try await world.raw(
            "HSET", "c:s:{im:u}", "mc", "5 - \(far)", "b", "\(far) 7 0 0", "rc", "9 \(far)|9 \(far) \(far)")
        var change = UserState.SettingsChange()
        change.language = "en"
        #expect(try await world.change("u", .settings(change), at: 1) == .applied(.none))
        #expect(try await world.recipient("u").recipient.settings.language == "en")
        let unmuted = UserState.Change.mute(conversation: "c", level: .unset, untilMs: nil)
        #expect(try await world.change("u", unmuted, at: 1) == .applied(.none))
        let report = UserState.Change.badgeReport(device: "d", value: 2, clientMs: StateWorld.base + 1)
        #expect(try await world.change("u", report, at: 1) == .applied(.badge(2, before: 7)))
        let read = UserState.Change.read(conversation: "c", upTo: .init(ms: StateWorld.base + 1))
        try await world.change("u", read, at: 1)
        let mark = try await world.recipient("u", conversation: "c").recipient.read
        #expect(mark == .init(seq: 9, ms: StateWorld.base + 1))
        await world.end()
    }

    @Test func `levels and a snooze change one by one, by the time of their records`() async throws {
        let world = try StateWorld()
        try await world.connect()
        let base = StateWorld.base
        func say(_ levels: TypeLevels, snooze: Int64? = nil, at ms: Int64) async throws -> UserSettings {
            var change = UserState.SettingsChange()
            (change.levels, change.snoozeUntilMs) = (levels, snooze)
            try await world.change("u", .settings(change), at: ms)
            return try await world.recipient("u").recipient.settings
        }
        let first: TypeLevels = [.group: .blocked, .p2p: .mentions]
        var found = try await say(first, snooze: base + 900, at: 2)
        #expect(found.levels == first && found.snoozeUntilMs == base + 900)
        let all: TypeLevels = [
            .group: .unset, .p2p: .mentions, .system: .all, .ultra: .mentionsOfAll, .custom: .mentionsOfMe,
        ]
        found = try await say([.group: .unset, .system: .all, .ultra: .mentionsOfAll, .custom: .mentionsOfMe], at: 3)
        #expect(found.levels == all && found.snoozeUntilMs == base + 900)
        found = try await say([.group: .blocked], snooze: base + 100, at: 1)
        #expect(found.levels == all && found.snoozeUntilMs == base + 900, "both are older")
        found = try await say([:], snooze: 0, at: 4)
        #expect(found.levels == all && found.snoozeUntilMs == 0)
        // The fields in Redis. Any other text is no level and no snooze.
        #expect(try await world.text("HGET", "c:u:{im:u}", "lg") == "\(base + 3) 0")
        #expect(try await world.text("HGET", "c:u:{im:u}", "sn") == "\(base + 4) 0")
        try await world.raw(
            "HSET", "c:u:{im:u}", "lg", "\(base) 3", "lp", "\(base) x", "lx", "\(base) 5", "sn", "\(base) -7")
        found = try await say([:], at: 5)
        #expect(found.levels[.group] == nil && found.levels[.p2p] == nil && found.snoozeUntilMs == 0)
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
        // A whole window each time: one that needs stored settings would be refused in some orders.
        let (start, end) = (Int.random(in: 0..<720, using: &random), Int.random(in: 720..<1440, using: &random))
        switch Int.random(in: 0..<3, using: &random) {
        case 0:
            (change.dndOn, change.dndStart, change.dndEnd) = (Bool.random(using: &random), start, end)
            if Bool.random(using: &random) { change.dndDays = .init(day: .random(in: 1...7, using: &random)) }
        case 1:
            change.dndOn = Bool.random(using: &random)
            change.dndWindows = [DNDWindow(start: start, end: end), DNDWindow(start: end, end: start)]
        default: break
        }
        if Bool.random(using: &random) { change.showDetail = Bool.random(using: &random) }
        if Bool.random(using: &random) { change.holdSeconds = .random(in: 0...600, using: &random) }
        if Bool.random(using: &random) {
            change.levels[Conversation.Kind.allCases.randomElement(using: &random) ?? .p2p] =
                MuteLevel.allCases.randomElement(using: &random)
        }
        if Bool.random(using: &random) { change.snoozeUntilMs = .random(in: 0...9, using: &random) * 1_000_000 }
        if Bool.random(using: &random) { change.language = ["en", "zh-Hans", "de"].randomElement(using: &random) }
        return (.settings(change), at)
    }
}
