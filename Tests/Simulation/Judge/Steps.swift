// SPDX-License-Identifier: Apache-2.0
/// Whether a rule holds for an event and a recipient: some facts are certain, others were changing.
enum Answer {
    case never, maybe, always

    init(_ answers: [Bool]) {
        self = answers.allSatisfy { $0 } ? .always : answers.contains(true) ? .maybe : .never
    }
}

/// The steps of the decision (contract section 5) for one recipient, as they may have been between the event and its
/// outcome. The first deny is the verdict.
struct Steps {
    /// Reasons in the order of the steps, without `expired`, which also holds later.
    var denials: [(reason: String, answer: Answer)] = []
    var expired = Answer.never
    /// Step 10.
    var counts = Answer.never
    var isForced = false

    init(
        _ event: Sent, _ uid: String, app: AppSettings, groupLevel: Int, history: History, revokes: [StepTime],
        from: UInt64, to: UInt64, clock: Clock
    ) {
        expired = Self.expired(event, from: from, to: to, clock)
        guard event.kind != .activity else { return }
        let words = event.push
        isForced = words.forces(uid)
        denials.append(("already_read", Self.read(event, history, from: from, to: to)))
        // A revoke is known from the moment at which its record exists.
        let isRevoked = revokes.contains { $0.writtenNanos <= to }
        denials.append(("revoked", isRevoked ? .maybe : .never))
        let isVetoed = !words.isEnabled || words.isCustom && words.content == nil && words.template == nil
        denials.append(("msg_push_off", isVetoed ? .always : .never))
        let isMention = words.mentionsAll || words.mentioned.contains(uid)
        let levels = Self.levels(event, app, groupLevel: groupLevel, history, from: from, to: to, clock)
        let windows = Self.snoozed(
            Self.windows(history, app, from: from, to: to, clock), history, from: from, to: to, clock)
        var (mutes, quiets, counted): ([Bool], [Bool], [Bool]) = ([], [], [])
        for level in levels {
            for window in windows {
                let passesMute =
                    isForced && words.force?.liftsMute == true || Self.allows(level, event, uid)
                let decides = app.windowDecides && window != nil
                let passesWindow =
                    window == nil || window == 1 && event.isGroup && isMention
                    || isForced && app.forceOverridesDND
                mutes.append(!decides && !passesMute)
                quiets.append(!passesWindow)
                let isWanted = event.kind == .revoke ? event.revokeBadge == "count" : words.isCounted
                counted.append(isWanted && !isVetoed && (passesMute || decides && passesWindow))
            }
        }
        denials.append(("conv_muted", Answer(mutes)))
        denials.append(("dnd", Answer(quiets)))
        counts = Answer(counted)
        if counts != .never, history.mayHaveOpen(event.conversation, from: from, to: to) {
            counts = history.hasOpen(event.conversation, from: from, to: to) ? .never : .maybe
        }
    }

    /// A record's time of writing.
    struct StepTime {
        var writtenNanos: UInt64
    }

    /// The world's wall clock, and how far a worker's may be from it.
    struct Clock {
        var originMs: Int64
        var slackMs: Int64
        func ms(_ nanos: UInt64) -> Int64 { originMs &+ Int64(clamping: min(nanos, 1 << 60) / 1_000_000) }
    }

    func answer(_ reason: String) -> Answer? {
        reason == "expired" ? expired : denials.first { $0.reason == reason }?.answer
    }

    /// A step that surely denies, and the reasons that may come before it.
    var certain: (reason: String, allowed: Set<String>)? {
        var allowed: Set<String> = []
        if expired == .always { return ("expired", ["expired"]) }
        if expired == .maybe { allowed.insert("expired") }
        for (reason, answer) in denials where answer != .never {
            allowed.insert(reason)
            if answer == .always { return (reason, allowed) }
        }
        return nil
    }

    // MARK: The rules

    private static func expired(_ event: Sent, from: UInt64, to: UInt64, _ clock: Clock) -> Answer {
        guard let expireMs = event.push.expireMs else { return .never }
        if clock.ms(from) - clock.slackMs >= expireMs { return .always }
        return clock.ms(to) + clock.slackMs >= expireMs ? .maybe : .never
    }

    private static func read(_ event: Sent, _ history: History, from: UInt64, to: UInt64) -> Answer {
        var answer = Answer.never
        for (index, state) in history.states.enumerated() {
            guard case .read(event.conversation, let upTo) = state.kind, upTo >= event.seq, state.atNanos <= to else {
                continue
            }
            if history.applied[index] < from { return .always }
            answer = .maybe
        }
        return answer
    }

    /// Nil: no level counts.
    private static func levels(
        _ event: Sent, _ app: AppSettings, groupLevel: Int, _ history: History, from: UInt64, to: UInt64, _ clock: Clock
    ) -> [Int] {
        struct Mute: Equatable {
            var level = 0
            var untilMs: Int64?
        }
        let mutes = history.possible(from: from, to: to, first: Mute()) { _, kind in
            if case .mute(event.conversation, let level, let until) = kind {
                Mute(level: level, untilMs: until)
            } else {
                nil
            }
        }
        var levels: [Int] = []
        for mute in mutes {
            let until = mute.untilMs ?? .max
            if clock.ms(from) - clock.slackMs < until { levels.append(mute.level) }
            if clock.ms(to) + clock.slackMs >= until { levels.append(0) }
        }
        let own = typeLevels(event, history, from: from, to: to)
        return levels.flatMap { level in
            if level != 0 { return [level] }
            if event.isGroup, groupLevel != 0 { return [groupLevel] }
            return own.map { $0 == 0 && event.isGroup ? app.groupLevel : $0 }
        }
    }

    private static func allows(_ level: Int, _ event: Sent, _ uid: String) -> Bool {
        let (words, isMe) = (event.push, event.push.mentioned.contains(uid))
        switch level {
        case -1, 0: return true
        case 1: return event.hasMentions && (isMe || words.mentionsAll)
        case 2: return event.hasMentions && isMe
        case 4: return event.hasMentions && words.mentionsAll
        default: return false
        }
    }

    /// The levels of the windows that may have held; nil in it: none held.
    private static func windows(
        _ history: History, _ app: AppSettings, from: UInt64, to: UInt64, _ clock: Clock
    ) -> [Int?] {
        let none = StateSent.QuietHours(isOn: false, start: 0, end: 1, level: 5)
        let all = history.possible(from: from, to: to, first: none) { current, kind in
            var next = current
            switch kind {
            case .quiet(let hours):
                next = hours
                if hours.days.isEmpty { next.days = current.days }
                if hours.zone == nil { next.zone = current.zone }
            case .quietSwitch(let isOn): next.isOn = isOn
            case .quietLevel(let level): next.level = level
            default: return nil
            }
            return next
        }
        var levels: [Int?] = []
        let zones = history.zones(from: from, to: to, taken: history.mayLoseTokens).map { $0 ?? "Asia/Shanghai" }
        let (first, last) = (clock.ms(from) - clock.slackMs, clock.ms(to) + clock.slackMs)
        // Some moments in between, and both ends.
        let moments = [first] + stride(from: first, to: last, by: 20_000) + [last]
        for hours in all {
            for zone in hours.zone.map({ $0.isEmpty ? zones : [$0] }) ?? zones {
                for ms in moments {
                    let level = hours.isOn && hours.holds(at: ms, in: zone) ? hours.level : nil
                    if !levels.contains(level) { levels.append(level) }
                }
            }
        }
        return levels
    }
}

extension Sent {
    /// A mention counts for the mute levels everywhere but between two persons.
    fileprivate var hasMentions: Bool { isGroup || isOfSystem }
}

extension StateSent.QuietHours {
    func holds(at ms: Int64, in zone: String) -> Bool {
        let (weekday, minute) = Zone.minute(at: ms, in: zone)
        func begins(on day: Int) -> Bool { days.isEmpty || days.contains(day) }
        if start < end { return minute >= start && minute < end && begins(on: weekday) }
        if minute >= start { return begins(on: weekday) }
        // It began the day before.
        return minute < end && begins(on: (weekday + 5) % 7 + 1)
    }
}
