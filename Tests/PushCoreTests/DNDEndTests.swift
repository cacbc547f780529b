// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@Suite struct DNDEndTests {
    private struct Zones: ZoneTable {
        func offset(of zone: String, at ms: Int64) -> Int? { zone == "east" ? 8 * 3600 : zone == "utc" ? 0 : nil }
    }

    private static let minuteMs: Int64 = 60_000
    private static let hourMs: Int64 = 3_600_000

    /// Start, end, zone, the time of day in UTC, and when the window ends, both in ms of the day; nil: none holds.
    @Test(arguments: [
        (22 * 60, 8 * 60, "utc", 23 * hourMs + 1, 32 * hourMs), (22 * 60, 8 * 60, "utc", 7 * hourMs, 8 * hourMs),
        (22 * 60, 8 * 60, "utc", 8 * hourMs, nil), (22 * 60, 8 * 60, "utc", 12 * hourMs, nil),
        (22 * 60, 8 * 60, "east", 14 * hourMs, 24 * hourMs),
        (22 * 60, 8 * 60, "east", 23 * hourMs + 59_999, 24 * hourMs),
        (60, 61, "utc", hourMs + 59_999, hourMs + minuteMs), (0, 1439, "utc", 0, 24 * hourMs - minuteMs),
    ])
    func theEndIsTheNextOneOfTheReceiversClock(start: Int, end: Int, zone: String, now: Int64, expected: Int64?) {
        let day: Int64 = 20_000 * 24 * Self.hourMs
        var recipient = Recipient(uid: "me")
        recipient.settings.dnd = .init(on: true, start: start, end: end, zone: zone, level: 5)
        let ends = DNDState.endMs(
            for: recipient, policy: AppPolicy(id: "im", topic: "t"), zones: Zones(), now: day + now)
        #expect(ends.map { $0 - day } == expected)
        recipient.settings.dnd = .init(on: false, start: start, end: end, zone: zone, level: 5)
        #expect(
            DNDState.endMs(for: recipient, policy: AppPolicy(id: "im", topic: "t"), zones: Zones(), now: day + now)
                == nil)
    }

    /// In hours of the day: the window's end, 0 for none; the snooze's end; and the later of both that are to come at 20:00.
    @Test(arguments: [(22, 23, 23), (22, 21, 22), (22, 20, 22), (0, 21, 21), (0, 20, nil)] as [(Int, Int64, Int64?)])
    func `a snooze ends at its own time, and with a window at the later of both`(
        windowEnd: Int, snoozeEnd: Int64, expected: Int64?
    ) {
        let day: Int64 = 20_000 * 24 * Self.hourMs
        var recipient = Recipient(uid: "me")
        if windowEnd > 0 { recipient.settings.dnd = .init(on: true, start: 0, end: windowEnd * 60, zone: "utc") }
        recipient.settings.snoozeUntilMs = day + snoozeEnd * Self.hourMs
        let ends = DNDState.endMs(
            for: recipient, policy: AppPolicy(id: "im", topic: "t"), zones: Zones(), now: day + 20 * Self.hourMs)
        #expect(ends == expected.map { day + $0 * Self.hourMs })
    }

    /// What stands in Redis or on a command line may be any number.
    @Test(arguments: [Int.min, -1, 1440, .max], [Int64.min, 0, .max])
    func noNumberTraps(minute: Int, now: Int64) {
        var recipient = Recipient(uid: "me")
        recipient.settings.snoozeUntilMs = now
        for (start, end) in [(minute, 5), (5, minute), (minute, minute)] {
            recipient.settings.dnd = .init(on: true, start: start, end: end, zone: "utc", level: 5)
            _ = DNDState.endMs(for: recipient, policy: AppPolicy(id: "im", topic: "t"), zones: Zones(), now: now)
        }
    }
}
