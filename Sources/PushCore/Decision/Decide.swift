// SPDX-License-Identifier: Apache-2.0
import Digits

/// Decides one message for one recipient at one instant (contract section 5, steps 2 and 6-12; steps 4 and 5 come
/// earlier).
///
/// Pure: no clock, no lookup, no log. `sentMs` is the record's `sent_ms`. The worker's entry without a trace.
public func decide(
    _ message: borrowing Message, sentMs: Int64, for recipient: borrowing Recipient, policy: borrowing AppPolicy,
    zones: some ZoneTable, now: Int64
) -> Decision {
    let quiet = DNDState(recipient, policy: policy, zones: zones, now: now)
    var trace = NoTrace()
    return decide(message, sentMs: sentMs, for: recipient, policy: policy, quiet: quiet, now: now, trace: &trace)
}

/// The same decision, with the result of each step kept as codes (`carillon trace`).
public func decide(
    _ message: borrowing Message, sentMs: Int64, for recipient: borrowing Recipient, policy: borrowing AppPolicy,
    zones: some ZoneTable, now: Int64, facts: inout DecisionFacts
) -> Decision {
    let quiet = DNDState(recipient, policy: policy, zones: zones, now: now)
    var trace = FactTrace()
    defer { facts = trace.facts }
    return decide(message, sentMs: sentMs, for: recipient, policy: policy, quiet: quiet, now: now, trace: &trace)
}

/// The same decision, with each step reported to `trace` (`explain`).
public func decide(
    _ message: borrowing Message, sentMs: Int64, for recipient: borrowing Recipient, policy: borrowing AppPolicy,
    zones: some ZoneTable, now: Int64, trace: inout some DecisionTrace
) -> Decision {
    let quiet = DNDState(recipient, policy: policy, zones: zones, now: now)
    return decide(message, sentMs: sentMs, for: recipient, policy: policy, quiet: quiet, now: now, trace: &trace)
}

/// Not generic over the zones, so that this module contains a version specialised for `NoTrace`.
private func decide<Trace: DecisionTrace>(
    _ message: borrowing Message, sentMs: Int64, for recipient: borrowing Recipient, policy: borrowing AppPolicy,
    quiet: DNDState, now: Int64, trace: inout Trace
) -> Decision {
    let expired = message.expireAtMs <= now
    trace.record(
        .expiry, input: "expires \(InstantText.text(ms: message.expireAtMs)), now \(InstantText.text(ms: now))",
        outcome: expired ? Reason.expired.rawValue : "in time")
    if expired {
        // `expire_at_ms`: nothing is sent after it, by any route.
        trace.keep([.expired])
        return Decision(alert: .deny(.expired), counted: false, routes: [], needsClaim: message.decreasesBadge)
    }
    let type = message.conversation.type
    let isForced = message.push.force.names(recipient.uid)
    let mention = MentionClass(message.mention, of: recipient.uid)
    let chain = MuteChain(recipient, in: message.conversation, policy: policy, now: now)
    let passesMute = (isForced && message.push.force.liftsMute) || chain.allows(mention, in: type)
    // RongCloud's strict chain: an active window overrides every mute level.
    let windowDecides = policy.dndMode == .chain && quiet.isActive

    let hasContent = message.hasContent(policy)
    let isVetoed = !message.push.enabled || (message.isCustomType && !hasContent)
    let passesWindow = quiet.allows(mention, in: type) || (isForced && policy.forceOverridesDND)

    // All steps are evaluated, so that each is reported. The first deny is the verdict.
    let read = denyForRead(message, sentMs: sentMs, of: recipient, trace: &trace)
    let veto = denyForVeto(message, hasContent: hasContent, isVetoed: isVetoed, trace: &trace)
    let mute = denyForMute(
        chain, mention, isForced: isForced, passes: passesMute, windowDecides: windowDecides, trace: &trace)
    let window = denyForDND(quiet, mention, isForced: isForced, passes: passesWindow, policy: policy, trace: &trace)
    let denied = read ?? veto ?? mute ?? window
    let alert = denied.map(Decision.Alert.deny) ?? .allow(forced: isForced)

    // A message held only by the window counts. An ordinary message in a muted conversation does not, even if only the
    // window held it (chain). Step 6 does not matter here: see `Decision.counted`.
    let isHeard = !isVetoed && (passesMute || (windowDecides && passesWindow))
    let counted = counts(message, isHeard: isHeard, for: recipient, now: now, trace: &trace)
    trace.keep(
        facts(
            of: message, for: recipient, chain, mention, quiet, denials: (read, veto, mute, window), counted: counted,
            isForced: isForced, windowDecides: windowDecides, now: now))
    let routes = Router(message, policy: policy, allowed: denied == nil, now: now).routes(to: recipient)
    for route in routes {
        trace.record(.routes, input: recipient.facts(of: route, at: now), outcome: route.way.text)
    }
    let decision = Decision(alert: alert, counted: counted, routes: routes)
    trace.record(
        .token, input: "tokens: \(recipient.tokens.count), routes: \(routes.count)",
        outcome: decision.reachesNobody ? Reason.noToken.rawValue : "reached")
    return decision
}

/// Step 6, and a known revoke: both make an alert obsolete.
private func denyForRead(
    _ message: borrowing Message, sentMs: Int64, of recipient: borrowing Recipient, trace: inout some DecisionTrace
) -> Reason? {
    let isRead = recipient.read?.covers(seq: message.serverSeq, sentMs: sentMs) ?? false
    let reason: Reason? = isRead ? .alreadyRead : recipient.isRevoked ? .revoked : nil
    trace.record(
        .read,
        input: "seq \(text(message.serverSeq)), sent \(InstantText.text(ms: sentMs)); \(text(recipient.read))"
            + (recipient.isRevoked ? "; revoked" : ""),
        outcome: reason?.rawValue ?? "unread")
    return reason
}

/// Step 7: the sender's veto, which no force lifts, or a custom type without content.
private func denyForVeto(
    _ message: borrowing Message, hasContent: Bool, isVetoed: Bool, trace: inout some DecisionTrace
) -> Reason? {
    trace.record(
        .veto,
        input: "push.enabled \(message.push.enabled), custom type \(message.isCustomType), content \(hasContent)",
        outcome: isVetoed ? Reason.msgPushOff.rawValue : "wanted")
    return isVetoed ? .msgPushOff : nil
}

/// Step 8.
private func denyForMute(
    _ chain: MuteChain, _ mention: MentionClass, isForced: Bool, passes: Bool, windowDecides: Bool,
    trace: inout some DecisionTrace
) -> Reason? {
    let reason: Reason? = windowDecides || passes ? nil : .convMuted
    trace.record(
        .mute,
        input: "\(MuteChain.text(chain.level, by: chain.link)), \(mention.text)\(isForced ? ", forced" : "")",
        outcome: windowDecides ? "the DND window decides" : reason?.rawValue ?? "let through")
    return reason
}

/// Step 9.
private func denyForDND(
    _ quiet: DNDState, _ mention: MentionClass, isForced: Bool, passes: Bool, policy: borrowing AppPolicy,
    trace: inout some DecisionTrace
) -> Reason? {
    trace.record(
        .dnd,
        input: quiet.isActive
            ? "\(quiet.text), \(mention.text)"
                + (isForced ? ", forced, force_overrides_dnd \(policy.forceOverridesDND)" : "")
            : "no active window",
        outcome: passes ? "let through" : Reason.dnd.rawValue)
    return passes ? nil : .dnd
}

/// Step 10: a message counts if it was let through, or held by DND only, unless the user has its conversation open on
/// a phone or tablet in the foreground.
private func counts(
    _ message: borrowing Message, isHeard: Bool, for recipient: borrowing Recipient, now: Int64,
    trace: inout some DecisionTrace
) -> Bool {
    let wanted = message.countsForBadge
    let isOpen = recipient.hasOpenOnMobile(message.conversation.id, at: now)
    let counted = wanted && isHeard && !isOpen
    trace.record(
        .badge,
        input: NotCounted(isWanted: wanted, isHeard: isHeard, isOpen: isOpen)?.rawValue
            ?? "push.badge is true, neither vetoed nor muted",
        outcome: counted ? "counted unless read or revoked" : "not counted")
    return counted
}

/// The results of the steps as codes.
private func facts(
    of message: borrowing Message, for recipient: borrowing Recipient, _ chain: MuteChain, _ mention: MentionClass,
    _ quiet: DNDState, denials: (read: Reason?, veto: Reason?, mute: Reason?, window: Reason?), counted: Bool,
    isForced: Bool, windowDecides: Bool, now: Int64
) -> DecisionFacts {
    var facts = DecisionFacts.decided
    facts.keep(.read, if: denials.read == .alreadyRead)
    facts.keep(.revoked, if: denials.read == .revoked)
    facts.keep(.vetoed, if: denials.veto != nil)
    facts.keep(.muted, if: denials.mute != nil)
    facts.keep(.windowDecides, if: windowDecides)
    facts.keep(.quiet, if: quiet.isActive)
    facts.keep(.snoozed, if: quiet.isSnoozed)
    facts.keep(.heldByQuiet, if: denials.window != nil)
    facts.keep(.forced, if: isForced)
    facts.keep(.mentionsMe, if: mention.me)
    facts.keep(.mentionsAll, if: mention.all)
    facts.keep(.countable, if: message.countsForBadge)
    facts.keep(.counted, if: counted)
    facts.keep(.conversationOpen, if: recipient.hasOpenOnMobile(message.conversation.id, at: now))
    facts.keep(chain)
    if denials.mute != nil {
        facts.deniedUntilMs = chain.untilMs
    } else if denials.window != nil {
        facts.deniedUntilMs = quiet.endMs(now: now)
    }
    return facts
}

extension DNDState {
    /// What holds, in words.
    fileprivate var text: String {
        isSnoozed
            ? "snoozed until \(InstantText.text(ms: snoozeUntilMs)), level 5"
            : "active at \(PushCore.text(minuteOfWeek: weekMinute)) of its zone, level \(level)"
    }
}

extension Message {
    /// A content of its own, or a template of the app that shows something.
    fileprivate func hasContent(_ policy: borrowing AppPolicy) -> Bool {
        if let content = push.content, !content.isEmpty { return true }
        guard let template = push.template else { return false }
        let id = UTF8Key(template.id)
        if policy.templateIDs.contains(id) { return true }
        guard let names = policy.argumentTemplates[id] else { return false }
        return names.contains { name in template.args[name].map { !BlankText.showsNothing($0) } ?? false }
    }
}

private func text(_ number: Int64?) -> String {
    number.map { String($0) } ?? "none"
}

private func text(_ mark: UserState.ReadMark?) -> String {
    guard let mark, mark.seq != nil || mark.ms != nil else { return "nothing read" }
    let parts = [mark.seq.map { "seq \($0)" }, mark.ms.map { InstantText.text(ms: $0) }]
    return "read up to \(parts.compactMap { $0 }.joined(separator: ", "))"
}

/// `Fri 08:49`.
private func text(minuteOfWeek minute: Int) -> String {
    let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    let (hour, rest) = (Int64(minute % 1440 / 60), Int64(minute % 60))
    return "\(days[minute / 1440 % 7]) \(InstantText.padded(hour, 2)):\(InstantText.padded(rest, 2))"
}
