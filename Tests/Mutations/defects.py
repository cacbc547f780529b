# SPDX-License-Identifier: Apache-2.0
"""Defects for `mutations.py`: each replaces some code of the product."""

from defect import DECISION, SCRIPTS, Defect
from further_defects import FURTHER
from later_defects import LATER

PIPELINE = "Sources/Worker/Pipeline/"

TEST_BREAKS = [
    "badge-twice",
    "commit-early",
    "drop-result",
    "forget-page",
    "ignore-revoke",
    "no-dedup",
    "no-recheck",
    "swallow-retry",
    "trust-copies",
]
"""Defects that show mostly after these faults: their worlds have no others."""
FAULTS = {
    "trust-copies": "redisFailover",
    "late-reply": "redisSlowness,join,kafkaGroup",
    "left-marked": "kafkaGroup,apnsLink",
    "sent-late": "apnsAnswers",
    "cluster-ignored": "kafkaMirror",
}


DEFECTS = [
    Defect(
        "late-reply",
        "a freed slot keeps its generation, so a late answer finds the next work",
        PIPELINE + "Work/SlotTable.swift",
        "slots[ref.slot].generation = (slots[ref.slot].generation &+ 1) & 0x7F_FFFF | firstGeneration",
        'if !mutant("late-reply") { slots[ref.slot].generation = (slots[ref.slot].generation &+ 1) & 0x7F_FFFF | firstGeneration }',
    ),
    Defect(
        "no-hand-back",
        "work that is given up at a revocation counts as settled",
        PIPELINE + "Path/Dispatch/Dispatcher.swift",
        "        if isLeft {\n            job.machine.leaveUnmarked()",
        '        if isLeft, !mutant("no-hand-back") {\n            job.machine.leaveUnmarked()',
    ),
    Defect(
        "left-marked",
        "a recipient whose queued push is left to the next owner is marked as finished",
        PIPELINE + "Path/Dispatch/Dispatcher.swift",
        "job.isPushing(device.device) else { return shard.noteLate() }\n        job.machine.leaveUnmarked()\n",
        "job.isPushing(device.device) else { return shard.noteLate() }\n"
        '        if !mutant("left-marked") { job.machine.leaveUnmarked() }\n',
    ),
    Defect(
        "mark-early",
        "the mark is written before the broker has the record",
        PIPELINE + "Path/Recorder/Recorder.swift",
        "        job.machine.recordSent()\n        outbox.send(topics.results, key: record.uid, value: writer, tag: job.tag(.record))",
        '        if !mutant("mark-early") { job.machine.recordSent() }\n'
        "        outbox.send(topics.results, key: record.uid, value: writer, tag: job.tag(.record))",
    ),
    Defect(
        "lost-turn",
        "a device that ends keeps its turn",
        PIPELINE + "Path/Dispatch/DeviceEnds.swift",
        "if let turn, !isTaken { sender",
        'if let turn, !isTaken, !mutant("lost-turn") { sender',
    ),
    Defect(
        "keep-journal",
        "a recipient that is parked counts here too",
        PIPELINE + "Path/Dispatch/RecipientEnds.swift",
        "            job.event.parting.append(record)\n",
        '            job.event.parting.append(record)\n            if mutant("keep-journal") { recorder.count(job) }\n',
    ),
    Defect(
        "unknown-note",
        "a note of a later version ends the list of notes",
        "Sources/Worker/State/EarlierNotes.swift",
        "            else { continue }\n            switch note {",
        '            else { if mutant("unknown-note") { break } else { continue } }\n            switch note {',
    ),
    Defect(
        "lost-slot",
        "a route that a later round replaces keeps the device's turn",
        PIPELINE + "Path/Dispatch/DeviceEnds.swift",
        "if replaceInPlace(job, index) { sender",
        'if replaceInPlace(job, index), !mutant("lost-slot") { sender',
    ),
    Defect(
        "settle-past",
        "an offset is committed though an earlier record is unsettled",
        "Sources/Kafka/OffsetWindow.swift",
        "        if sequence != head { return .waiting }\n        return .advanced",
        '        if sequence != head, !mutant("settle-past") { return .waiting }\n'
        '        if mutant("settle-past") { while head < sequence { ring[place(head)].isSettled = true; head &+= 1 } }\n'
        "        return .advanced",
    ),
    Defect(
        "no-resume",
        "a partition with a full window is never read again",
        PIPELINE + "Path/Intake/InputLedgers.swift",
        "        case .resume: fullPartitions.remove(partition)",
        '        case .resume: if !mutant("no-resume") { fullPartitions.remove(partition) }',
    ),
    Defect(
        "park-early",
        "the offset of a parked event is settled before the broker has the record",
        PIPELINE + "Beside/Parking/Parking.swift",
        "        send(Deferred([parked]), .arrival(record, intake))\n",
        "        send(Deferred([parked]), .arrival(record, intake))\n"
        '        if mutant("park-early") { intake.settle(record.origin.place) }\n',
    ),
    Defect(
        "forget-chunk",
        "a large group loses one of its chunks",
        PIPELINE + "Beside/Chunks/ChunkPlan.swift",
        "return gathered.filter { !$0.members.isEmpty }",
        'return Array(gathered.filter { !$0.members.isEmpty }.dropLast(mutant("forget-chunk") ? 1 : 0))',
    ),
    Defect(
        "ack-trusted",
        "every awaited ack counts as received",
        PIPELINE + "Path/Dispatch/RecipientWaits.swift",
        "if acknowledged.containsSame(job.devices[index].route.device) {",
        'if acknowledged.containsSame(job.devices[index].route.device) || mutant("ack-trusted") {',
    ),
    Defect(
        "hold-forever",
        "the end of a hold is ignored",
        PIPELINE + "Path/Dispatch/RecipientWaits.swift",
        "if job.devices.contains(where: \\.isHeld) { ends.decideAgain(job) }",
        'if job.devices.contains(where: \\.isHeld), !mutant("hold-forever") { ends.decideAgain(job) }',
    ),
    Defect(
        "activity-goes-on",
        "the end of a Live Activity is not noted",
        PIPELINE + "Path/Dispatch/MarkNotes.swift",
        "action != .update, !job.event.isBroadcast else { return }",
        'action != .update, !job.event.isBroadcast, action == .start || !mutant("activity-goes-on")\n        else { return }',
    ),
    Defect(
        "read-kept",
        "a read subtracts nothing from the badge",
        SCRIPTS + "ReadScripts.swift",
        "        inHundreds(off, function(...) redis.call('ZREM', KEYS[2], ...) end)",
        '        \\(mutant("read-kept") ? "off = {}" : "")\n'
        "        inHundreds(off, function(...) redis.call('ZREM', KEYS[2], ...) end)",
    ),
    Defect(
        "report-adds",
        "a report is added to the messages before it",
        SCRIPTS + "ReadScripts.swift",
        "if tonumber(string.match(m, '^%d+', 9)) <= at then past = past + 1 end",
        "if tonumber(string.match(m, '^%d+', 9)) <= at then past = past + \\(mutant(\"report-adds\") ? 0 : 1) end",
    ),
    Defect(
        "old-report",
        "an older report replaces a newer one",
        SCRIPTS + "ReadScripts.swift",
        "if at < base or (at == base and new < value) then return",
        'if \\(mutant("old-report") ? "false and " : "")(at < base or (at == base and new < value)) then return',
    ),
    Defect(
        "owner-kept",
        "a token that moves also stays with its previous user",
        SCRIPTS + "OwnerScripts.swift",
        "if t == ARGV[1] and v <= ARGV[2] and (ARGV[3] == '' or b == ARGV[3]) then",
        'if \\(mutant("owner-kept") ? "false and " : "")t == ARGV[1] and v <= ARGV[2] and '
        "(ARGV[3] == '' or b == ARGV[3]) then",
    ),
    Defect(
        "count-muted",
        "a muted message counts",
        DECISION + "Decide.swift",
        "let counted = wanted && isHeard && !isOpen",
        'let counted = wanted && (isHeard || mutant("count-muted")) && !isOpen',
    ),
    Defect(
        "mute-forever",
        "a mute does not end",
        DECISION + "MuteChain.swift",
        "        guard let untilMs else { return true }",
        '        guard let untilMs, !mutant("mute-forever") else { return true }',
    ),
    Defect(
        "force-lifts-all",
        "a forced push lifts the mute though it should not",
        DECISION + "Decide.swift",
        "(isForced && message.push.force.liftsMute)",
        '(isForced && (message.push.force.liftsMute || mutant("force-lifts-all")))',
    ),
    Defect(
        "mention-in-dnd",
        "a mention passes a DND window of level 5",
        DECISION + "DNDState.swift",
        "!isActive || (level == 1 &&",
        '!isActive || ((level == 1 || mutant("mention-in-dnd")) &&',
    ),
    Defect(
        "sent-late",
        "after its decision a push is sent though its life has ended",
        PIPELINE + "Path/FanOut/EventJob.swift",
        "var expiresAtMs: Int64 { subject.expireAtMs }",
        'var expiresAtMs: Int64 { mutant("sent-late") ? .max : subject.expireAtMs }',
    ),
    Defect(
        "denied-alert",
        "a live device gets an alert that is denied",
        DECISION + "Router.swift",
        "self.alerts = allowed && !message.push.silent",
        'self.alerts = (allowed || mutant("denied-alert")) && !message.push.silent',
    ),
    Defect(
        "details-shown",
        "hidden details are shown",
        "Sources/Payload/PayloadVariant.swift",
        "        self.isHidden = isHidden\n",
        '        self.isHidden = isHidden && !mutant("details-shown")\n',
    ),
    Defect(
        "exclude-ignored",
        "excluded users get the message",
        PIPELINE + "Path/FanOut/FanOut.swift",
        "event.message?.read { $0.isMeant(for: uid) } ?? true",
        'mutant("exclude-ignored") || event.message?.read { $0.isMeant(for: uid) } ?? true',
    ),
    # Rules of the decision.
    Defect(
        "ack-long", "a device in the background has 8 s for its ack", DECISION + "Liveness.swift",
        "self == .foreground ? 8_000 : 4_000", 'self == .foreground || mutant("ack-long") ? 8_000 : 4_000',
    ),
    Defect(
        "background-forever", "an app in the background is live for ever", DECISION + "Liveness.swift",
        "return since > now &- Liveness.backgroundActiveMs ? .background : .dead",
        'return since > now &- Liveness.backgroundActiveMs || mutant("background-forever") ? .background : .dead',
    ),
    Defect(
        "desktop-ignored", "phones never wait for a live desktop", DECISION + "Router.swift",
        "let holds = desktop.holds && !isDesktop", 'let holds = desktop.holds && !isDesktop && !mutant("desktop-ignored")',
    ),
    Defect(
        "hold-half", "a hold is half as long", DECISION + "Router.swift",
        "Int64(recipient.settings.holdSeconds) &* 1000",
        'Int64(recipient.settings.holdSeconds) &* (mutant("hold-half") ? 500 : 1000)',
    ),
    Defect(
        "desktop-has-it", "phones end at once though the desktop's ack is awaited", DECISION + "Router.swift",
        "return willHaveIt ? .untilDesktopHasIt : .final",
        'return willHaveIt && !mutant("desktop-has-it") ? .untilDesktopHasIt : .final',
    ),
    Defect(
        "mention-in-p2p", "a mention between two persons lifts the level of mentions", DECISION + "MuteChain.swift",
        "case .mentions: type != .p2p && mention.isMention",
        'case .mentions: (type != .p2p || mutant("mention-in-p2p")) && mention.isMention',
    ),
    Defect(
        "all-as-me", "@all passes the level of @me", DECISION + "MuteChain.swift",
        "case .mentionsOfMe: type != .p2p && mention.me",
        'case .mentionsOfMe: type != .p2p && (mention.me || mutant("all-as-me") && mention.all)',
    ),
    Defect(
        "group-level-lost", "a member's level in the group is ignored", DECISION + "MuteChain.swift",
        "let level = recipient.groupLevel, level != .unset",
        'let level = recipient.groupLevel, level != .unset, !mutant("group-level-lost")',
    ),
    Defect(
        "app-level-lost", "the app's default levels are ignored", DECISION + "MuteChain.swift",
        "let level = policy.defaultLevels[conversation.type], level != .unset",
        'let level = policy.defaultLevels[conversation.type], level != .unset, !mutant("app-level-lost")',
    ),
    Defect(
        "chain-ignored", "a window of the strict chain does not decide alone", DECISION + "Decide.swift",
        "policy.dndMode == .chain && quiet.isActive",
        'policy.dndMode == .chain && quiet.isActive && !mutant("chain-ignored")',
    ),
    Defect(
        "force-in-dnd", "a forced push passes DND though the app does not say so", DECISION + "Decide.swift",
        "(isForced && policy.forceOverridesDND)",
        '(isForced && (policy.forceOverridesDND || mutant("force-in-dnd")))',
    ),
    Defect(
        "zone-of-token", "the zone of a token wins over that of the window", DECISION + "DNDState.swift",
        "let names = [window.zone, Self.newestZone(recipient.tokens), policy.defaultZone]",
        'let own = [window.zone, Self.newestZone(recipient.tokens)]\n'
        '        let names = (mutant("zone-of-token") ? own.reversed() : own) + [policy.defaultZone]',
    ),
    Defect(
        "zone-ignored", "the zone of a token is ignored", DECISION + "DNDState.swift",
        "guard let zone = token.record.zone, newest",
        'guard let zone = token.record.zone, !mutant("zone-ignored"), newest',
    ),
    Defect(
        "window-early", "a window ends a minute early", "Sources/PushCore/Recipient/DNDWindow.swift",
        "return left > 0 && days", 'return left > (mutant("window-early") ? 1 : 0) && days',
    ),
    Defect(
        "days-ignored", "a window holds on all days", "Sources/PushCore/Recipient/DNDWindow.swift",
        "days.contains(Days(day: firstDay)) ?", '(days.contains(Days(day: firstDay)) || mutant("days-ignored")) ?',
    ),
    Defect(
        "day-of-now", "a window that began yesterday has today's day", "Sources/PushCore/Recipient/DNDWindow.swift",
        "let firstDay = minute >= start ?", 'let firstDay = minute >= start || mutant("day-of-now") ?',
    ),
    Defect(
        "open-counts", "a message counts though its conversation is open", DECISION + "RecipientFacts.swift",
        "conversation.isSame(as: presence[index].activeConversation) && isMobileInForeground(index, at: now)",
        'conversation.isSame(as: presence[index].activeConversation) && isMobileInForeground(index, at: now)\n'
        '                && !mutant("open-counts")',
    ),
    Defect(
        "open-on-desktop", "a conversation that is open on a desktop counts as open", DECISION + "RecipientFacts.swift",
        "!presence[index].platform.isDesktop && presence[index].liveness(at: now) == .foreground",
        '(!presence[index].platform.isDesktop || mutant("open-on-desktop"))\n'
        '            && presence[index].liveness(at: now) == .foreground',
    ),
    Defect(
        "devices-ignored", "to.devices is ignored", "Sources/PushCore/Event/DeviceLimit.swift",
        "if let devices, !(", 'if let devices, !mutant("devices-ignored"), !(',
    ),
    Defect(
        "read-of-later", "a read covers the next message too", DECISION + "RecipientFacts.swift",
        "messageSeq <= seq { return true }", 'messageSeq <= seq + (mutant("read-of-later") ? 1 : 0) { return true }',
    ),
    # Payloads.
    Defect(
        "content-over-template", "push.content wins over a template", "Sources/Payload/Text/AlertText.swift",
        "let content = forced ?? template?.content",
        'let content = forced ?? (mutant("content-over-template") ? message.push.content.flatMap(Self.shown) : nil)\n'
        "            ?? template?.content",
    ),
    Defect(
        "prefix-always", "push.prefix: false has a prefix", "Sources/Payload/Text/AlertText.swift",
        "name: message.push.prefix ? rules.prefix.text(nick: nick)",
        'name: message.push.prefix || mutant("prefix-always") ? rules.prefix.text(nick: nick)',
    ),
    Defect(
        "content-key-ignored", "the content key of a token is ignored", "Sources/Payload/Text/Templates.swift",
        "if let contentKey, let text = first", 'if let contentKey, !mutant("content-key-ignored"), let text = first',
    ),
    Defect(
        "language-of-user", "the language of the user wins over that of the token", "Sources/Payload/PayloadVariant.swift",
        "language: token.language ?? settings.language ?? defaultLanguage",
        'language: (mutant("language-of-user") ? settings.language : nil) ?? token.language ?? settings.language\n'
        "                ?? defaultLanguage",
    ),
    Defect(
        "revoke-own-id", "a revoke has a collapse id of its own", "Sources/Payload/CollapseID.swift",
        "            return hashed(target)", '            return hashed(mutant("revoke-own-id") ? message.msgID : target)',
    ),
    Defect(
        "priority-ignored", "push.priority is ignored", "Sources/Payload/EventHeaders.swift",
        "priority = message.push.silent ? 5 : wanted",
        'priority = message.push.silent ? 5 : mutant("priority-ignored") ? 10 : wanted',
    ),
    Defect(
        "lives-longer", "apns-expiration is a minute late", "Sources/Payload/EventHeaders.swift",
        "{ max(1, ms / 1000) }", '{ max(1, ms / 1000) + (mutant("lives-longer") ? 60 : 0) }',
    ),
    Defect(
        "corner-mark", "each revoke has corner_mark_decrease", "Sources/Payload/ProfileKeys.swift",
        "if message.decreasesBadge, lowersBadge {", 'if message.decreasesBadge, lowersBadge || mutant("corner-mark") {',
    ),
    Defect(
        "rc-target", "an answer to a group goes to the sender", "Sources/Payload/ProfileKeys.swift",
        '["GRP", "DS", "SYS"].containsSame(type) ?', '["GRP", "DS", "SYS"].containsSame(type) && !mutant("rc-target") ?',
    ),
    Defect(
        "session-of-group", "sessionid is always the conversation", "Sources/Payload/ProfileKeys.swift",
        "message.conversation.type == .p2p ? message.from.uid",
        'message.conversation.type == .p2p && !mutant("session-of-group") ? message.from.uid',
    ),
    Defect(
        "cut-early", "a payload that fits is cut", "Sources/Payload/PayloadTemplate.swift",
        "{ voip ? 5120 : 4096 }", '{ voip ? 5120 : mutant("cut-early") ? 4000 : 4096 }',
    ),
    Defect(
        "merged-less", "a merged alert says one message less", "Sources/Payload/Text/Templates.swift",
        "return Self.filled(text, count)", 'return Self.filled(text, count - (mutant("merged-less") ? 1 : 0))',
    ),
    Defect(
        "mutable-always", "push.mutable: false is ignored", "Sources/Payload/PayloadRules.swift",
        "message.push.isMutable && (badge", '(message.push.isMutable || mutant("mutable-always")) && (badge',
    ),
    # User state.
    Defect(
        "dnd-not-stored", "the switch of DND is not stored", SCRIPTS + "SettingsScripts.swift",
        "if at > was or (at == was and value > stands) then",
        'if \\(mutant("dnd-not-stored") ? "field ~= \'dn\' and " : "")(at > was or (at == was and value > stands)) then',
    ),
    Defect(
        "mute-not-stored", "a mute is not stored", SCRIPTS + "SettingsScripts.swift",
        "        if redis.call('HSET', KEYS[1], ARGV[1], new) == 1",
        '        \\(mutant("mute-not-stored") ? "if true then return 1 end" : "")\n'
        "        if redis.call('HSET', KEYS[1], ARGV[1], new) == 1",
    ),
    Defect(
        "ack-lost", "an ack is not stored", SCRIPTS + "ReportScripts.swift",
        "            redis.call('HSET', KEYS[1], ARGV[i], ARGV[2] .. ' ' .. devices)",
        '            \\(mutant("ack-lost") ? "devices = \'\'" : "")\n'
        "            redis.call('HSET', KEYS[1], ARGV[i], ARGV[2] .. ' ' .. devices)",
    ),
    Defect(
        "ack-overwrites", "the ack of a device takes the place of another's", SCRIPTS + "ReportScripts.swift",
        "devices = devices .. ARGV[1]", 'devices = \\(mutant("ack-overwrites") ? "" : "devices .. ")ARGV[1]',
    ),
    Defect(
        "reports-again", "each report of a push counts", SCRIPTS + "ReportScripts.swift",
        "        if isNew == 1 then", '        \\(mutant("reports-again") ? "isNew = 1" : "")\n        if isNew == 1 then',
    ),
    Defect(
        "old-bind", "a bind of another user with an equal version takes the token", SCRIPTS + "OwnerScripts.swift",
        "if v > ARGV[1] or (v == ARGV[1] and not isOwn) then return {0} end",
        'if \\(mutant("old-bind") ? "false and " : "")(v > ARGV[1] or (v == ARGV[1] and not isOwn)) then return {0} end',
    ),
    Defect(
        "words-not-kept", "a bind without a language forgets the earlier one", SCRIPTS + "OwnerScripts.swift",
        "(ARGV[6 + i] == '=' and (kept[i] or '-') or ARGV[6 + i])",
        "(ARGV[6 + i] == '=' and \\(mutant(\"words-not-kept\") ? \"'-'\" : \"(kept[i] or '-')\") or ARGV[6 + i])",
    ),
    Defect(
        "replaced-kept", "the owner of a replaced token stays", SCRIPTS + "OwnerScripts.swift",
        "if not isSame then replaced, was = t, v end",
        'if not isSame and \\(mutant("replaced-kept") ? "false" : "true") then replaced, was = t, v end',
    ),
    Defect(
        "unbind-ignored", "an unbind does not apply", SCRIPTS + "OwnerScripts.swift",
        "if v and v == ARGV[1] and uid == ARGV[2] then",
        'if \\(mutant("unbind-ignored") ? "false and " : "")v and v == ARGV[1] and uid == ARGV[2] then',
    ),
    Defect(
        "read-mark-lost", "a read leaves no mark for later messages", SCRIPTS + "ReadScripts.swift",
        "local fresh = redis.call('HSET', KEYS[1], ARGV[1], text)",
        "local fresh = \\(mutant(\"read-mark-lost\") ? \"0\" : \"redis.call('HSET', KEYS[1], ARGV[1], text)\")",
    ),
    Defect(
        "clear-forgotten", "a read owes no number to the devices", SCRIPTS + "ReadScripts.swift",
        "return {1, after, before, redis.call('HEXISTS', KEYS[1], 'w')}",
        'return {1, after, before, \\(mutant("clear-forgotten") ? "0 and 0 or " : "")redis.call(\'HEXISTS\', KEYS[1], \'w\')}',
    ),
    # Answers of APNs.
    Defect(
        "dead-token-kept", "a token that APNs does not know stays", PIPELINE + "Path/Dispatch/Ending.swift",
        'case .remove: removal = reason.text',
        'case .remove where mutant("dead-token-kept"): break\n            case .remove: removal = reason.text',
    ),
    Defect(
        "gone-always", "a 410 from before the bind removes the token", PIPELINE + "Path/Dispatch/Ending.swift",
        "token.record.isDead(sinceMs: timestampMs) ?",
        '(token.record.isDead(sinceMs: timestampMs) || mutant("gone-always")) ?',
    ),
    Defect(
        "copy-alerts", "the copy of an accepted push alerts", PIPELINE + "Path/Dispatch/DeviceRules.swift",
        "case .accepted: false", 'case .accepted: mutant("copy-alerts")',
    ),
    Defect(
        "attempts-one", "attempts are always one", PIPELINE + "Path/Dispatch/Dispatcher.swift",
        "record.attempts = push.attempts", 'record.attempts = mutant("attempts-one") ? 1 : push.attempts',
    ),
    Defect(
        "retry-after-ignored", "Retry-After is ignored", "Sources/APNs/Retry/RetryPolicy.swift",
        "        if let retryAfter {", '        if let retryAfter, !mutant("retry-after-ignored") {',
    ),
    Defect(
        "unknown-once", "a push without an answer is not repeated", "Sources/APNs/Retry/RetryPolicy.swift",
        "Int(history.unknowns) <= unknownTries", 'Int(history.unknowns) <= (mutant("unknown-once") ? 0 : unknownTries)',
    ),
    Defect(
        "newest-first", "after a 429 the newest push of a device goes first", "Sources/APNs/Retry/TokenBackoff.swift",
        "waiting.min(by: { $0.order < $1.order })",
        'waiting.min(by: { mutant("newest-first") ? $0.order > $1.order : $0.order < $1.order })',
    ),
    # Side records and statistics.
    Defect(
        "sms-unasked", "an SMS is asked for though nobody wanted it", PIPELINE + "Path/Recorder/Recorder.swift",
        "guard job.event.wantsSMS,", 'guard job.event.wantsSMS || mutant("sms-unasked"),',
    ),
    Defect(
        "sms-never", "no SMS is asked for", PIPELINE + "Path/Recorder/Recorder.swift",
        "job.event.expiresAtMs > shard.nowMs, let message", 'job.event.expiresAtMs > shard.nowMs, !mutant("sms-never"), let message',
    ),
    Defect(
        "phone-lost", "an SMS has no phone", PIPELINE + "Path/Recorder/Recorder.swift",
        "phone: job.settings.phone", 'phone: mutant("phone-lost") ? nil : job.settings.phone',
    ),
    Defect(
        "task-lost", "no task is counted", "Sources/Worker/Statistics/StatisticsFlush.swift",
        "if subject.task == 0 { continue }", 'if subject.task == 0 || mutant("task-lost") { continue }',
    ),
    Defect(
        "opened-as-arrived", "an opened push counts as arrived", "Sources/Worker/Statistics/StatisticsFlush.swift",
        "case .opened: outcome.isSent ? [.opened]",
        'case .opened: outcome.isSent ? [mutant("opened-as-arrived") ? .arrived : .opened]',
    ),
    Defect(
        "sent-only-accepted", "a rejected push does not count as sent", "Sources/Worker/Statistics/StatisticsFlush.swift",
        "case .rejected: outcome.isSent ? [.sent, .rejected]",
        'case .rejected: outcome.isSent && !mutant("sent-only-accepted") ? [.sent, .rejected]',
    ),
    # Handing on.
    Defect(
        "chunk-without-levels", "a chunk forgets its members' levels", PIPELINE + "Beside/Chunks/ChunkRecord.swift",
        "level: known ?? .unset))", 'level: mutant("chunk-without-levels") ? .unset : known ?? .unset))',
    ),
    Defect(
        "parked-hold-lost", "parked work forgets its hold", PIPELINE + "Beside/Parking/OpenRecipients.swift",
        "holdUntilMs = base.dueMs &+ delta",
        'holdUntilMs = mutant("parked-hold-lost") ? nil : base.dueMs &+ delta',
    ),
    Defect(
        "epoch-ignored", "the epoch of a lease is ignored", "Sources/Worker/State/LeaseCache.swift",
        "if answer(for: entry.gateway, nowNanos: nowNanos) != .held(epoch: entry.gatewayEpoch) {",
        "let lease = answer(for: entry.gateway, nowNanos: nowNanos)\n"
        '            if mutant("epoch-ignored") ? lease == .notHeld : lease != .held(epoch: entry.gatewayEpoch) {',
    ),
    # Moves to another Kafka cluster.
    Defect(
        "cluster-ignored", "the cluster's id is ignored: offsets of another cluster count", PIPELINE + "Path/Intake/Intake.swift",
        'consumer.clusterID.map { "\\($0)/\\(consumer.topics[0])" } ?? ""',
        'consumer.clusterID.map { "\\(mutant("cluster-ignored") ? "any" : $0)/\\(consumer.topics[0])" } ?? ""',
    ),
] + LATER + FURTHER
