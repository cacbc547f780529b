import EventLoop
import PushCore
import Redis

/// A short way for a group's members who get nothing, since their level or the sender says so: most of a giant group.
///
/// Three plain reads, and neither settings, tokens nor a claim: what is denied and not counted moves no badge and needs no
/// token. Only what can still turn such a denial is looked at: the user's own mute and read mark, a device that is live,
/// and the mark of an earlier delivery. Where it does, and where Redis does not answer, the long way is taken from its
/// beginning. A crash before the mark repeats the record, as it does on the long way.
extension Pipeline {
    /// Reads a member who was just read from his group, by the way that he will most likely go.
    func readMember(_ job: RecipientJob) {
        guard isLikelyDenied(job) else { return read(job) }
        job.step = .reading
        job.flags.insert(.shortWay)
        job.awaiting = 3
        let event = job.event
        let app = event.app.id
        let uid = job.recipient.uid
        ask(job) { (store) throws(RedisFault) in
            try store.readMark(app: app, uid: uid, kind: event.subject.kind, id: event.subject.id, tag: job.tag(.mark))
        }
        ask(job) { (store) throws(RedisFault) in
            try store.readConversation(
                app: app, uid: uid, conversation: event.conversationID, tag: job.tag(.conversation))
        }
        ask(job) { (store) throws(RedisFault) in try store.readPresence(app: app, uid: uid, tag: job.tag(.presence)) }
    }

    /// A message that his group's level or the sender keeps from him. Not with `dnd_mode: chain`, where quiet hours, which
    /// are among the settings, may let through what a level denies; a recall may have a badge to lower; and while Redis takes
    /// no writes, only the long way knows what to do without a mark.
    private func isLikelyDenied(_ job: RecipientJob) -> Bool {
        guard refusal == nil, let level = job.recipient.groupLevel, job.event.subject.kind == .message,
            job.event.digest == nil, job.event.app.policy.dndMode == .independent,
            job.event.isSwitchedOff || (level != .unset && level != .all)
        else { return false }
        // Whom nobody mentions or forces has no way around his level, so there is no need to ask for the verdict twice.
        return job.event.isPlain || denial(of: job) != nil
    }

    /// What `decide` says of all that was read by now, if that is a denial which nothing else can turn.
    private func denial(of job: RecipientJob) -> Decision? {
        guard job.recipient.presence.isEmpty, let message = job.event.message else { return nil }
        let decision = message.read { message in
            PushCore.decide(
                message, sentMs: job.event.sentMs, for: job.recipient, policy: job.event.app.policy, zones: zones,
                now: loop.wallMs, facts: &job.facts)
        }
        guard case .deny(let reason) = decision.alert, reason != .expired, !decision.counted else { return nil }
        return decision
    }

    func didReadMember(_ job: RecipientJob) {
        job.flags.remove(.shortWay)
        guard let decision = denial(of: job) else { return read(job) }
        if job.flags.remove(.wasFinished) != nil { return endFinished(job) }
        guard takesPair(job) else { return }
        job.facts.insert(.settingsUnread)
        job.decision = decision
        denied.append(job)
    }

    /// Records all who were denied since the last call, and then puts their marks together.
    func recordDenied() {
        denied.takeAll { job in
            route(job)
            recorded.append(job)
        }
        recorded.takeAll(sealIfEnded)
    }
}
