# SPDX-License-Identifier: Apache-2.0
"""Defects for `mutations.py`: each replaces some code of the product."""

from dataclasses import dataclass

PIPELINE = "Sources/Worker/Pipeline/"
SCRIPTS = "Sources/Worker/State/Scripts/"
DECISION = "Sources/PushCore/Decision/"

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
}


@dataclass
class Defect:
    name: str
    """What is wrong."""
    says: str
    path: str
    old: str
    new: str


DEFECTS = [
    Defect(
        "late-reply",
        "a freed slot keeps its generation, so a late answer finds the next work",
        PIPELINE + "Work/SlotTable.swift",
        "slots[ref.slot].generation = (slots[ref.slot].generation &+ 1) & 0xFF_FFFF",
        'if !mutant("late-reply") { slots[ref.slot].generation = (slots[ref.slot].generation &+ 1) & 0xFF_FFFF }',
    ),
    Defect(
        "no-hand-back",
        "work that is given up at a revocation counts as settled",
        PIPELINE + "Path/Dispatch/Dispatcher+Ends.swift",
        "        if isLeft {\n            job.machine.leaveUnmarked()",
        '        if isLeft, !mutant("no-hand-back") {\n            job.machine.leaveUnmarked()',
    ),
    Defect(
        "left-marked",
        "a recipient whose queued push is left to the next owner is marked as finished",
        PIPELINE + "Path/Dispatch/Dispatcher+Ends.swift",
        "job.isPushing(device.device) else { return shard.late() }\n        job.machine.leaveUnmarked()\n",
        "job.isPushing(device.device) else { return shard.late() }\n"
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
        PIPELINE + "Path/Dispatch/Dispatcher+Ends.swift",
        "if left == .openAndDeviceFree { sender.leaveQueue",
        'if left == .openAndDeviceFree, !mutant("lost-turn") { sender.leaveQueue',
    ),
    Defect(
        "lost-slot",
        "a route that a later round replaces keeps the device's turn",
        PIPELINE + "Path/Dispatch/Dispatcher+Ends.swift",
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
        "        let waiting = Pending(intake, record.origin, record: record)\n",
        "        let waiting = Pending(intake, record.origin, record: record)\n"
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
        PIPELINE + "Path/Dispatch/Dispatcher+Rounds.swift",
        "if acknowledged.containsSame(job.devices[index].route.device) {",
        'if acknowledged.containsSame(job.devices[index].route.device) || mutant("ack-trusted") {',
    ),
    Defect(
        "hold-forever",
        "the end of a hold is ignored",
        PIPELINE + "Path/Dispatch/Dispatcher+Rounds.swift",
        "if job.devices.contains(where: \\.isHeld) { decideAgain(job) }",
        'if job.devices.contains(where: \\.isHeld), !mutant("hold-forever") { decideAgain(job) }',
    ),
    Defect(
        "activity-goes-on",
        "the end of a Live Activity is not noted",
        PIPELINE + "Path/Dispatch/Dispatcher+Outcomes.swift",
        "guard let (action, id) = job.event.activity, action != .update else { return }",
        'guard let (action, id) = job.event.activity, action != .update, action == .start || !mutant("activity-goes-on")\n'
        "        else { return }",
    ),
    Defect(
        "read-kept",
        "a read subtracts nothing from the badge",
        SCRIPTS + "StateScripts+Reads.swift",
        "        inHundreds(off, function(...) redis.call('ZREM', KEYS[2], ...) end)",
        '        \\(mutant("read-kept") ? "off = {}" : "")\n'
        "        inHundreds(off, function(...) redis.call('ZREM', KEYS[2], ...) end)",
    ),
    Defect(
        "report-adds",
        "a report is added to the messages before it",
        SCRIPTS + "StateScripts+Reads.swift",
        "if tonumber(string.match(m, '^%d+', 9)) <= at then past = past + 1 end",
        "if tonumber(string.match(m, '^%d+', 9)) <= at then past = past + \\(mutant(\"report-adds\") ? 0 : 1) end",
    ),
    Defect(
        "old-report",
        "an older report replaces a newer one",
        SCRIPTS + "StateScripts+Reads.swift",
        "if at < base or (at == base and new < value) then return",
        'if \\(mutant("old-report") ? "false and " : "")(at < base or (at == base and new < value)) then return',
    ),
    Defect(
        "owner-kept",
        "a token that moves also stays with its former user",
        SCRIPTS + "StateScripts+Tokens.swift",
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
]
