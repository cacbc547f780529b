// SPDX-License-Identifier: Apache-2.0
/// A user's quiet windows at one instant, in the time zone that counts for the user (contract section 5, step 9).
public struct DNDState: Sendable, Equatable {
    /// How long the window that ends last still holds, in minutes; 0 if none holds.
    public var minutesLeft: Int
    /// 1 allows mentions in groups. 5 allows nothing.
    public var level: Int
    /// Minute of the local week; 0 is Monday 00:00.
    public var weekMinute: Int
    /// The end of the snooze that holds now, Unix ms; 0 if none holds.
    public var snoozeUntilMs: Int64 = 0

    /// A window or a snooze holds now.
    public var isActive: Bool { minutesLeft > 0 || isSnoozed }
    /// A snooze denies alerts like a window of level 5. Windows may hold at the same time.
    public var isSnoozed: Bool { snoozeUntilMs > 0 }

    /// No window, or a window that is switched off.
    public static var off: DNDState { DNDState(minutesLeft: 0, level: 5, weekMinute: 0) }

    public init(minutesLeft: Int, level: Int, weekMinute: Int) {
        self.minutesLeft = minutesLeft
        self.level = level
        self.weekMinute = weekMinute
    }

    /// Evaluates the window in the recipient's zone: the window's own, else the newest token's, else the app's.
    ///
    /// A zone that the table does not know is skipped. Without a known zone, UTC is used.
    public init(
        _ recipient: borrowing Recipient, policy: borrowing AppPolicy, zones: some ZoneTable, now: Int64
    ) {
        let snoozeUntilMs = recipient.settings.snoozeUntilMs > now ? recipient.settings.snoozeUntilMs : 0
        guard let window = recipient.settings.dnd, window.on else {
            self = .off
            self.snoozeUntilMs = snoozeUntilMs
            return
        }
        let names = [window.zone, Self.newestZone(recipient.tokens), policy.defaultZone]
        let offset = names.lazy.compactMap { $0.flatMap { zones.offset(of: $0, at: now) } }.first ?? 0
        let minute = Self.minuteOfWeek(now, offset: offset)
        self.init(minutesLeft: window.left(weekMinute: minute), level: window.level, weekMinute: minute)
        self.snoozeUntilMs = snoozeUntilMs
    }

    /// - Returns: whether a message is allowed during the window or snooze.
    public func allows(_ mention: MentionClass, in type: Conversation.Kind) -> Bool {
        !isActive || (level == 1 && !isSnoozed && type.hasMembers && mention.isMention)
    }

    /// - Returns: When the window or snooze that holds now ends, Unix ms; of several the last end. Nil if none holds. A change
    ///   of the clocks in between is not foreseen.
    public static func endMs(
        for recipient: borrowing Recipient, policy: borrowing AppPolicy, zones: some ZoneTable, now: Int64
    ) -> Int64? {
        DNDState(recipient, policy: policy, zones: zones, now: now).endMs(now: now)
    }

    /// The same for this state, which was evaluated at `now`.
    func endMs(now: Int64) -> Int64? {
        guard minutesLeft > 0 else { return isSnoozed ? snoozeUntilMs : nil }
        // The current minute counts whole.
        let begun = now &- (now % 60_000 + 60_000) % 60_000
        return max(begun &+ Int64(minutesLeft) * 60_000, snoozeUntilMs)
    }

    /// The minute of the local week, 0-10079, also before 1970.
    public static func minuteOfWeek(_ ms: Int64, offset seconds: Int) -> Int {
        let week: Int64 = 604_800
        let second = ms >= 0 ? ms / 1000 : (ms + 1) / 1000 - 1
        // 1970 began on a Thursday. An offset need not be whole minutes.
        let local = second % week + Int64(seconds % 86_400) + 3 * 86_400
        return Int((local % week + week) % week / 60)
    }

    /// The zone of the token bound last, which is the best hint for the user's location.
    private static func newestZone(_ tokens: [BoundToken]) -> String? {
        var newest: (zone: String, boundMs: Int64)?
        for token in tokens {
            guard let zone = token.record.zone, newest.map({ token.record.boundMs > $0.boundMs }) ?? true else {
                continue
            }
            newest = (zone, token.record.boundMs)
        }
        return newest?.zone
    }
}

extension UserSettings.DoNotDisturb {
    /// How long the window that ends last still holds, in minutes; 0 if none holds.
    func left(weekMinute: Int) -> Int {
        var most = 0
        for window in windows {
            if let left = window.left(weekMinute: weekMinute), left > most { most = left }
        }
        return most
    }
}
