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
        let isVetoed = !words.isEnabled || words.isCustom && words.content == nil
        denials.append(("msg_push_off", isVetoed ? .always : .never))
        let isMention = words.mentionsAll || words.mentioned.contains(uid)
        let levels = Self.levels(event, app, groupLevel: groupLevel, history, from: from, to: to, clock)
        let windows = Self.windows(history, from: from, to: to, clock)
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
                counted.append(
                    words.isCounted && !isVetoed && (passesMute || decides && passesWindow))
            }
        }
        denials.append(("conv_muted", Answer(mutes)))
        denials.append(("dnd", Answer(quiets)))
        counts = Answer(counted)
        if counts == .always, history.mayHaveOpen(event.conversation, from: from, to: to) { counts = .maybe }
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
        let mutes = history.possible(from: from, to: to, first: Mute()) { kind in
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
        return levels.map { level in
            if level != 0 { return level }
            if event.isGroup { return groupLevel != 0 ? groupLevel : app.groupLevel }
            return 0
        }
    }

    private static func allows(_ level: Int, _ event: Sent, _ uid: String) -> Bool {
        let (words, isMe) = (event.push, event.push.mentioned.contains(uid))
        switch level {
        case -1, 0: return true
        case 1: return event.isGroup && (isMe || words.mentionsAll)
        case 2: return event.isGroup && isMe
        case 4: return event.isGroup && words.mentionsAll
        default: return false
        }
    }

    /// The levels of the windows that may have held; nil in it: none held.
    private static func windows(_ history: History, from: UInt64, to: UInt64, _ clock: Clock) -> [Int?] {
        let none = StateSent.QuietHours(isOn: false, start: 0, end: 1, level: 5)
        let all = history.possible(from: from, to: to, first: none) { kind in
            if case .quiet(let hours) = kind { hours } else { nil }
        }
        var levels: [Int?] = []
        for hours in all {
            let (first, last) = (clock.ms(from) - clock.slackMs, clock.ms(to) + clock.slackMs)
            // Each minute in between, and both ends.
            let moments = [first] + stride(from: first, to: last, by: 20_000) + [last]
            for ms in moments {
                let level = hours.isOn && hours.holds(at: ms) ? hours.level : nil
                if !levels.contains(level) { levels.append(level) }
            }
        }
        return levels
    }
}

extension StateSent.QuietHours {
    /// In Shanghai, eight hours ahead of UTC.
    func holds(at ms: Int64) -> Bool {
        let minute = Int((ms / 60_000 + 8 * 60) % (24 * 60))
        return start < end ? minute >= start && minute < end : minute >= start || minute < end
    }
}
