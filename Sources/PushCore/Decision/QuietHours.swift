/// A user's quiet window at one instant, in the zone that counts for him (contract section 5, step 9).
public struct QuietHours: Sendable, Equatable {
    /// The window holds now.
    public var isActive: Bool
    /// 1: mentions in groups come through. 5: nothing does.
    public var level: Int
    /// Minute of the local day.
    public var minute: Int

    /// No window, or one that is switched off.
    public static var off: QuietHours { QuietHours(isActive: false, level: 5, minute: 0) }

    public init(isActive: Bool, level: Int, minute: Int) {
        self.isActive = isActive
        self.level = level
        self.minute = minute
    }

    /// Looks at the clock of the recipient's zone: the window's own, else the newest token's, else the app's.
    ///
    /// A zone that the table does not know is passed over; where none is known UTC stands.
    public init(
        _ recipient: borrowing Recipient, policy: borrowing AppPolicy, zones: some ZoneTable, now: Int64
    ) {
        guard let window = recipient.settings.dnd, window.on else {
            self = .off
            return
        }
        let names = [window.zone, Self.newestZone(recipient.tokens), policy.defaultZone]
        let offset = names.lazy.compactMap { $0.flatMap { zones.offset(of: $0, at: now) } }.first ?? 0
        let minute = Self.minuteOfDay(now, offset: offset)
        self.init(isActive: window.holds(minute: minute), level: window.level, minute: minute)
    }

    /// Whether a message comes through although the window holds.
    public func allows(_ mention: MentionClass, in type: Conversation.Kind) -> Bool {
        !isActive || (level == 1 && type.hasMembers && mention.isMention)
    }

    /// When the recipient's window ends, Unix ms; nil: none holds now. A change of the clocks in between is not foreseen.
    public static func endMs(
        for recipient: borrowing Recipient, policy: borrowing AppPolicy, zones: some ZoneTable, now: Int64
    ) -> Int64? {
        let quiet = QuietHours(recipient, policy: policy, zones: zones, now: now)
        guard quiet.isActive, let window = recipient.settings.dnd else { return nil }
        // Neither is checked here: a day has 1440 minutes, whatever a window says.
        let end = (window.end % 1440 + 1440) % 1440
        let left = (end - quiet.minute + 1440) % 1440
        // The minute that has begun counts whole.
        let begun = now &- (now % 60_000 + 60_000) % 60_000
        return begun &+ Int64(left == 0 ? 1440 : left) * 60_000
    }

    /// The minute of the local day, 0-1439, also before 1970.
    public static func minuteOfDay(_ ms: Int64, offset seconds: Int) -> Int {
        let second = ms >= 0 ? ms / 1000 : (ms + 1) / 1000 - 1
        // An offset need not be whole minutes.
        let local = second % 86_400 + Int64(seconds % 86_400)
        return Int((local % 86_400 + 86_400) % 86_400 / 60)
    }

    /// The zone of the token bound last: the best word on where the user is.
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
    /// Whether the window covers this minute of the day: its start does, its end does not.
    ///
    /// start > end wraps midnight; start = end is refused on writing, and read as the whole day.
    public func holds(minute: Int) -> Bool {
        if start < end { return minute >= start && minute < end }
        return minute >= start || minute < end
    }
}
