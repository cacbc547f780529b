// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Simulation

/// The judge finds each broken rule in a history made by hand, and nothing in a good one.
@Suite("The judge of the simulation")
struct JudgeTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The broken rule; nil: none is.
        let rule: String?
        let change: @Sendable (inout HistoryOfOneDay) -> Void

        init(_ name: String, _ rule: String?, _ change: @escaping @Sendable (inout HistoryOfOneDay) -> Void) {
            testDescription = name
            self.rule = rule
            self.change = change
        }
    }

    @Test(
        arguments: goodRows + outcomeRows + reasonRows + pushRows + deliveryRows + sideRows + reportRows + staleRows
            + badgeRows)
    func theRuleIsFound(_ row: Row) {
        var history = HistoryOfOneDay()
        row.change(&history)
        let found = history.violations
        if let rule = row.rule {
            #expect(found.contains { $0.rule == rule }, "\(found)")
        } else {
            #expect(found.isEmpty)
        }
    }

    static let goodRows = [
        Row("the history as it is", nil) { _ in },
        Row("a record twice after a fault", nil) {
            $0.allowance.mayRepeat = true
            $0.outcome("e1", "accepted", "ok", device: "d1", pid: "p1", at: 30)
        },
        Row("attempts that count anew after a 429 with a long wait", nil) { $0.putOff(seconds: 11) },
        Row("a message that two processes read in two partitions", nil) {
            $0.copy("e1")
            $0.allowance.hadOneProcess = false
            $0.push("m1", pid: "p1", at: 11.5)
        },
        Row("a muted message", nil) {
            $0.state("s2", .mute(conversation: "u1_u2", level: 5, untilMs: nil), at: 15)
            $0.forget("e2", "m2")
            $0.outcome("e2", "suppressed", "conv_muted", at: 22)
            $0.setProbe(badge: 2)
        },
        Row("a repeat after a muted try, which left no trace", nil) {
            $0.allowance.mayRepeat = true
            $0.state("s2", .mute(conversation: "u1_u2", level: 5, untilMs: nil), at: 20.05)
            $0.outcome("e2", "suppressed", "conv_muted", at: 20.1)
        },
        Row("a denied repeat of a message that does not count, which left no trace", nil) {
            $0.allowance.mayRepeat = true
            $0.change("e2") { $0.push.isCounted = false }
            $0.state("s2", .read(conversation: "u1_u2", upTo: 2), at: 23)
            $0.outcome("e2", "suppressed", "already_read", at: 30)
            $0.observed.pushes[1].badge = 1
            $0.setProbe(badge: 1)
        },
        Row("an ack between a record without a device and its repeat", nil) {
            $0.allowance.mayRepeat = true
            $0.state("s3", .unbind(device: "d1", token: "t1"), at: 14)
            $0.state("s4", .bind(device: "d1", token: "t1", type: .alert), at: 50)
            $0.forget("e2", "m2")
            $0.outcome("e2", "suppressed", "no_token", at: 22)
            $0.move("d1", "fg", at: 15)
            $0.deliver("e2", at: 20.1)
            $0.state("s2", .ack(device: "d1", messageID: "m2"), at: 25)
            $0.outcome("e2", "online", "acked", device: "d1", at: 30)
        },
        Row("a mute at the time of the message may hold or not", nil) {
            $0.state("s2", .mute(conversation: "u1_u2", level: 5, untilMs: nil), at: 20.5)
        },
        Row("a message that DND holds counts", nil) {
            $0.state("s2", .quiet(.init(isOn: true, start: 0, end: 1439, level: 5)), at: 15)
            $0.forget("e2", "m2")
            $0.outcome("e2", "suppressed", "dnd", at: 22)
            $0.state("s3", .quiet(.init(isOn: false, start: 0, end: 1439, level: 5)), at: 50)
        },
        Row("an ack", nil) {
            $0.move("d1", "fg", at: 15)
            $0.move("d1", "off", at: 40)
            $0.forget("e2", "m2")
            $0.deliver("e2", at: 20.1)
            $0.state("s2", .ack(device: "d1", messageID: "m2"), at: 21)
            $0.outcome("e2", "online", "acked", device: "d1", at: 22)
        },
        Row("an alert after the push to the next owner of the token", nil) {
            $0.state("s2", .bind(device: "x1", token: "t1", type: .alert), of: "u2", at: 9.9)
            $0.observed.results["s2"]?.atNanos = HistoryOfOneDay.nanos(11.1)
            $0.move("d1", "fg", at: 5)
            $0.move("d1", "off", at: 15)
            $0.change("e1") { $0.recipients = ["u1", "u2"] }
            ($0.observed.outcomes[0].uid, $0.observed.outcomes[0].device) = ("u2", "x1")
            $0.deliver("e1", at: 11.5)
            $0.state("s3", .ack(device: "d1", messageID: "m1"), at: 12)
            $0.outcome("e1", "online", "acked", device: "d1", at: 12.6)
            $0.deny("no_token")
            $0.forget("e9", "m9")
            $0.outcome("e9", "suppressed", "no_token", at: 92)
        },
        Row("a report is the new base", nil) {
            $0.state("s2", .report(value: 7, clientMs: HistoryOfOneDay.ms(15)), at: 15.1)
            $0.observed.pushes[1].badge = 8
            $0.setProbe(badge: 9)
        },
        Row("a read after the report lowers it", nil) {
            $0.state("s2", .report(value: 7, clientMs: HistoryOfOneDay.ms(25)), at: 25.1)
            $0.state("s3", .read(conversation: "u1_u2", upTo: 2), at: 30)
            $0.setProbe(badge: 6)
        },
    ]

    static let outcomeRows = [
        Row("a muted end after the device's", "a verdict with devices or one without") {
            $0.allowance.mayRepeat = true
            $0.state("s2", .mute(conversation: "u1_u2", level: 5, untilMs: nil), at: 20.05)
            $0.outcome("e2", "suppressed", "conv_muted", at: 40)
        },
        Row("a read end after the push whose mark Redis refused", nil) { $0.readAfterPush(refusedUntil: 21) },
        Row("a read end after the push, and Redis refused writes before", "a verdict with devices or one without") {
            $0.readAfterPush(refusedUntil: 20.9)
        },
        Row("no outcome", "one final outcome") { $0.observed.outcomes.removeFirst() },
        Row("two outcomes of a device", "one final outcome") {
            $0.outcome("e1", "suppressed", "expired", device: "d1", at: 13)
        },
        Row("an outcome twice", "one final outcome") {
            $0.outcome("e1", "accepted", "ok", device: "d1", pid: "p1", at: 13)
        },
        Row("only a parked record", "one final outcome") {
            $0.observed.outcomes.removeFirst()
            $0.outcome("e1", "parked", "unavailable", device: "d1", at: 12)
        },
        Row("none for a device", "one final outcome") {
            $0.state("s2", .bind(device: "d2", token: "t2", type: .alert), at: 2)
        },
        Row("with a device and without", "a verdict with devices or one without") {
            $0.outcome("e1", "suppressed", "no_token", at: 13)
        },
        Row("of a user who is no recipient", "results only of recipients") {
            $0.outcome("e1", "suppressed", "no_token", uid: "u2", at: 13)
        },
        Row("a dead letter", "no dead letter") { $0.observed.deadLetters.append("bad_event") },
    ]

    static let reasonRows = [
        Row("muted, and nobody muted", "the reason") { $0.deny("conv_muted") },
        Row("DND without a window", "the reason") { $0.deny("dnd") },
        Row("read by nobody", "the reason") { $0.deny("already_read") },
        Row("revoked by nobody", "the reason") { $0.deny("revoked") },
        Row("expired before its time", "the reason") {
            $0.deny("expired")
            $0.change("e2") { $0.push.expireMs = HistoryOfOneDay.ms(60) }
        },
        Row("vetoed, and no veto", "the reason") { $0.deny("msg_push_off") },
        Row("no token, and a token is there", "the reason") { $0.deny("no_token") },
        Row("for a desktop that is not there", "the reason") {
            $0.forget("e2", "m2")
            $0.outcome("e2", "suppressed", "desktop_online", device: "d1", at: 22)
        },
        Row("merged without bursts", "the reason") {
            $0.forget("e2", "m2")
            $0.outcome("e2", "suppressed", "coalesced", device: "d1", at: 22)
        },
        Row("moved, and no token moved", "the reason") {
            $0.forget("e2", "m2")
            $0.outcome("e2", "suppressed", "token_moved", device: "d1", at: 22)
        },
        Row("moved, as its token was removed while it waited", nil) { $0.removeToken(after: 19) },
        Row("moved, and its token was removed before", "the reason") { $0.removeToken(after: 15) },
        Row("removed, with the time that a late clock gave its bind", nil) {
            $0.removeToken(after: 19)
            $0.readLate()
            $0.observed.feedback[0].boundMs -= 40_000
        },
        Row("removed, with another time of its bind", "feedback") {
            $0.removeToken(after: 19)
            $0.observed.feedback[0].boundMs -= 40_000
        },
        Row("long connection only", "the reason") {
            $0.forget("e2", "m2")
            $0.outcome("e2", "suppressed", "connection_only", device: "d1", at: 22)
        },
        Row("accepted without a request", "the reason") { $0.observed.pushes.removeAll { $0.pid == "p2" } },
        Row("rejected, and APNs refused nothing", "the reason") {
            $0.forget("e2", "m2")
            $0.outcome("e2", "rejected", "Unanswered", device: "d1", pid: "p2", at: 22)
        },
        Row("forced by nobody", "the reason") { $0.observed.outcomes[1].reason = "forced" },
        Row("acked without a delivery", "the reason") {
            $0.forget("e2", "m2")
            $0.outcome("e2", "online", "acked", device: "d1", at: 22)
        },
        Row("pushed though muted", "the reason") {
            $0.state("s2", .mute(conversation: "u1_u2", level: 5, untilMs: nil), at: 15)
        },
        Row("a mention only for others", "the reason") {
            $0.state("s2", .mute(conversation: "u1_u2", level: 2, untilMs: nil), at: 15)
            $0.change("e2") {
                $0.isGroup = true
                $0.push.mentioned = ["u3"]
            }
        },
        Row("an activity is over without an end", "the reason") {
            $0.change("e2") { $0.activity = Sent.Activity(id: "a", step: .update) }
            $0.deny("activity_over")
        },
    ]
}

extension HistoryOfOneDay {
    /// The second message is denied for that reason.
    mutating func deny(_ reason: String) {
        forget("e2", "m2")
        outcome("e2", "suppressed", reason, at: 22)
    }

    /// APNs refuses the token for a message of that time. The second message ends as if the token had moved.
    fileprivate mutating func removeToken(after seconds: Double) {
        sources.answers = [
            AnswerPeriod(fromNanos: Self.nanos(seconds), toNanos: .max, status: 410, token: "t1")
        ]
        forget("e2", "m2")
        forget("e9", "m9")
        send("e3", "m3", conversation: "u1_u3", seq: 1, at: seconds)
        push("m3", pid: "p3", badge: 2, status: 410, at: seconds + 1.5) { $0.reason = "Unregistered" }
        outcome("e3", "rejected", "Unregistered", device: "d1", pid: "p3", badge: 2, at: seconds + 1.6)
        observed.feedback = [
            .init(
                atNanos: Self.nanos(seconds + 1.6), app: "im", uid: "u1", device: "d1", token: "t1",
                cause: "Unregistered", boundMs: Self.ms(1))
        ]
        outcome("e2", "suppressed", "token_moved", device: "d1", at: 22)
        outcome("e9", "suppressed", "no_token", at: 92)
    }

    mutating func setProbe(badge: Int64) {
        for index in observed.outcomes.indices where observed.outcomes[index].eventID == "e9" {
            observed.outcomes[index].badge = badge
        }
        for index in observed.pushes.indices where observed.pushes[index].messageID == "m9" {
            observed.pushes[index].badge = badge
        }
    }
}

extension JudgeTests {
    static let pushRows = [
        Row("a push twice", "no push twice") { $0.push("m1", pid: "p1", at: 13) },
        Row("a push twice after a move in peace", "no push twice") {
            ($0.allowance.mayRepeat, $0.allowance.isMovedInPeace) = (true, true)
            $0.push("m1", pid: "p1", at: 13)
        },
        Row("a life that begins by a late clock", nil) {
            $0.readLate()
            $0.observed.pushes[1].expiration = $0.observed.pushes[1].expiration.map { $0 - 40 }
        },
        Row("a life that begins before a late clock", "the payload") {
            $0.readLate()
            $0.observed.pushes[1].expiration = $0.observed.pushes[1].expiration.map { $0 - 50 }
        },
        Row("a life that begins by a late clock, of a message with a Kafka time", "the payload") {
            $0.readLate(hasOddTimes: false)
            $0.observed.pushes[1].expiration = $0.observed.pushes[1].expiration.map { $0 - 40 }
        },
        Row("a life that begins a millisecond before a second, of a message without a Kafka time", nil) {
            $0.beginEarlier(hasOddTimes: true)
        },
        Row("a life that begins a millisecond before a second, of a message with a Kafka time", "the payload") {
            $0.beginEarlier(hasOddTimes: false)
        },
        Row("a life that begins two milliseconds before a second", "the payload") {
            $0.beginEarlier(hasOddTimes: true)
            $0.change("e2") { $0.sentMs += 1 }
        },
        Row("an update", nil) { $0.update(secondsLate: 0) },
        Row("an update with the time of a late clock", nil) {
            $0.readLate()
            $0.update(secondsLate: 40)
        },
        Row("an update with a time before that of a late clock", "the payload") {
            $0.readLate()
            $0.update(secondsLate: 50)
        },
        Row("an update with the time of a late clock, and a Kafka time", "the payload") {
            $0.readLate(hasOddTimes: false)
            $0.update(secondsLate: 40)
        },
        Row("to another user", "no push to another user") {
            $0.state("s2", .bind(device: "x1", token: "t1", type: .alert), of: "u2", at: 15)
        },
        Row("twice to one process, of two copies", "no push twice") {
            $0.copy("e1")
            $0.push("m1", pid: "p1", at: 11.5)
        },
        Row("three times, of two copies", "no push twice") {
            $0.copy("e1")
            $0.allowance.hadOneProcess = false
            for _ in 0..<2 { $0.push("m1", pid: "p1", at: 11.5) }
        },
        Row("to another token of a phone that changed hands", "no push after an account switch") {
            $0.state("s2", .bind(device: "d1", token: "v1", type: .voip), at: 2)
            $0.state("s3", .bind(device: "x1", token: "t1", type: .alert), of: "u2", at: 15)
            $0.push("m2", pid: "p7", to: "v1", at: 21)
        },
        Row("after another app's backlog", "an app waits for itself only") {
            $0.allowance.isOnlyThrottled = true
            $0.sources.answers = [
                AnswerPeriod(
                    fromNanos: HistoryOfOneDay.nanos(5), toNanos: HistoryOfOneDay.nanos(6), status: 429,
                    retryAfterSeconds: 11, app: "im")
            ]
            $0.observed.outcomes[0].atNanos = HistoryOfOneDay.nanos(40)
        },
        Row("with a latency since 1970", "the latency") {
            $0.observed.outcomes[0].latencyMs = HistoryOfOneDay.ms(12)
        },
        Row("after its read", "no push after its read") {
            $0.state("s2", .read(conversation: "u1_u2", upTo: 1), at: 14)
            $0.push("m1", pid: "p1", at: 30)
        },
        Row("after its revoke", "no push after its revoke") {
            $0.send("e3", "r3", seq: 3, kind: .revoke, at: 14) { $0.target = "m1" }
            $0.outcome("e3", "suppressed", "no_token", at: 15)
            $0.push("m1", pid: "p1", at: 30)
        },
        Row("out of order", "the order of a conversation") {
            $0.push("m1", pid: "p1", at: 23)
            $0.observed.pushes.removeFirst()
        },
        Row("in a muted conversation", "the push") {
            $0.state("s2", .mute(conversation: "u1_u2", level: 5, untilMs: nil), at: 15)
        },
        Row("in a DND window", "the push") {
            $0.state("s2", .quiet(.init(isOn: true, start: 0, end: 1439, level: 5)), at: 15)
        },
        Row("against the sender's veto", "the push") { $0.change("e2") { $0.push.isEnabled = false } },
        Row("after its life", "the push") {
            $0.change("e2") { $0.push.expireMs = HistoryOfOneDay.ms(20.1) }
            $0.push("m2", pid: "p2", status: 500, at: 30) { $0.expiration = HistoryOfOneDay.ms(20) / 1000 }
        },
        Row("with another life", "the push") {
            $0.change("e2") { $0.push.expireMs = HistoryOfOneDay.ms(60) }
            $0.observed.pushes[1].expiration = HistoryOfOneDay.ms(70) / 1000
        },
        Row("with hidden details", "the payload") { $0.state("s2", .showsDetail(false), at: 5) },
        Row("with another text", "the payload") { $0.say("N: text of m1", in: 1) },
        Row("without the forced text", "the payload") {
            $0.change("e2") { $0.push.force = .init(uids: nil, content: "now", liftsMute: true) }
        },
        Row("a silent message as an alert", "the push") { $0.change("e2") { $0.push.isSilent = true } },
        Row("a call to an alert token", "the push") { $0.change("e2") { $0.push.isVoip = true } },
        Row("by a strategy without APNs", "the push") { $0.sources.apps[0].strategy = 3 },
        Row("an update after the end of its activity", "the push") {
            $0.change("e1") { $0.activity = Sent.Activity(id: "a", step: .end) }
            $0.change("e2") { $0.activity = Sent.Activity(id: "a", step: .update) }
        },
        Row("of no event", "a push belongs to an event") { $0.push(nil, pid: "p5", at: 40) { $0.body = "?" } },
        Row("a badge that the client counts", "the badge's owner") { $0.sources.apps[0].badge = .none },
        Row("a badge over the cap", "the badge") { $0.sources.apps[0].badgeCap = 2 },
        Row("another number", "the number") { $0.observed.pushes[1].badge = 3 },
        Row("no number", "the number") { $0.observed.pushes[1].badge = nil },
        Row("another priority", "the payload") { $0.observed.pushes[1].priority = 5 },
        Row("another topic", "the payload") { $0.observed.pushes[1].topic = "com.example.im.voip" },
        Row("a collapse id of another message", "collapse ids") { $0.observed.pushes[1].collapseID = "m1" },
        Row("more answers than attempts", "attempts") { $0.observed.outcomes[0].attempts = 0 },
        Row("more answers than attempts since a 429 with a short wait", "attempts") { $0.putOff(seconds: 9) },
        Row("after its ack", "acks") {
            $0.move("d1", "fg", at: 15)
            $0.deliver("e2", at: 20.1)
            $0.observed.deliveries[0].ackByMs = HistoryOfOneDay.ms(28)
            $0.state("s2", .ack(device: "d1", messageID: "m2"), at: 21)
            $0.push("m2", pid: "p2", badge: 2, at: 28)
        },
        Row("before its ack is missing", "acks") {
            $0.move("d1", "fg", at: 15)
            $0.deliver("e2", at: 20.1)
            $0.observed.deliveries[0].ackByMs = HistoryOfOneDay.ms(28)
        },
        Row("while a desktop is live", "desktops") { $0.waitForDesktop() },
        Row("while the lease of a live desktop is lost", nil) {
            $0.waitForDesktop()
            $0.loseLease(renewedAt: 19.5)
        },
        Row("after the lease of a live desktop is back", "desktops") {
            $0.waitForDesktop()
            $0.loseLease(renewedAt: 18.2)
        },
        Row("before its hold is over", "desktops") {
            $0.move("pc", "fg", isDesktop: true, at: 15)
            $0.state("s2", .desktopPolicy(pushes: false, holdSeconds: 3), at: 16)
        },
    ]

    static let sideRows = [
        Row("an SMS that nobody wanted", "SMS") {
            $0.observed.sms.append(
                .init(atNanos: HistoryOfOneDay.nanos(23), app: "im", eventID: "e2", uid: "u1", reason: "all_failed"))
        },
        Row("feedback without a cause", "feedback") {
            $0.observed.feedback.append(
                .init(
                    atNanos: HistoryOfOneDay.nanos(23), app: "im", uid: "u1", device: "d1", token: "t1",
                    cause: "Unregistered", boundMs: HistoryOfOneDay.ms(1)))
        },
        Row("a dead token that stays", "feedback") {
            $0.sources.answers = [AnswerPeriod(fromNanos: 0, toNanos: .max, status: 410, token: "t1")]
            $0.push("m2", pid: "p2", badge: 2, status: 410, at: 22)
        },
        Row("a request before its Retry-After is over", "waits") {
            $0.sources.answers = [AnswerPeriod(fromNanos: 0, toNanos: .max, status: 429, retryAfterSeconds: 20)]
            $0.push("m2", pid: "p2", badge: 2, status: 429, at: 22)
            $0.push("m2", pid: "p2", badge: 2, at: 23)
        },
        Row("a request of another process with a copy, whose own answer was no 429", nil) { $0.putOffOneCopy() },
        Row("a request of the same process, of two copies, before its Retry-After is over", "waits") {
            $0.putOffOneCopy()
            $0.allowance.hadOneProcess = true
        },
        Row("copies of which a process with another clock denies one", nil) { $0.denyOneCopy() },
        Row("copies of which one process denies one", "a verdict with devices or one without") {
            $0.denyOneCopy()
            $0.allowance.hadOneProcess = true
        },
        Row("copies of which a process with the same clock denies one", "a verdict with devices or one without") {
            $0.denyOneCopy()
            $0.readLate(by: 50)
        },
        Row("a setting that is ignored", "results") {
            $0.state("s2", .showsDetail(true), at: 15)
            $0.observed.results["s2"]?.outcome = "ignored"
        },
        Row("an ack that is ignored", "results") {
            $0.state("s2", .ack(device: "d1", messageID: "m1"), at: 15)
            $0.observed.results["s2"]?.outcome = "ignored"
        },
        Row("a bind that is not taken", "results") {
            $0.state("s2", .bind(device: "d2", token: "t2", type: .voip), at: 15)
            $0.observed.results["s2"]?.outcome = "stale"
        },
    ]

    static let deliveryRows = [
        Row("a copy that is seen just before its push", nil) {
            $0.move("d1", "fg", at: 10.9)
            $0.move("d1", "off", at: 15)
            $0.deliver("e1", alerts: false, at: 10.995)
            $0.observed.deliveries[0].isPushed = true
        },
        Row("a copy before its push", "one alert") {
            $0.move("d1", "fg", at: 10.9)
            $0.move("d1", "off", at: 15)
            $0.deliver("e1", alerts: false, at: 10.98)
            $0.observed.deliveries[0].isPushed = true
        },
        Row("over a connection of a moment ago, which a replaced master still has", nil) {
            $0.deliverAfter(endedAt: 19.9)
        },
        Row("over a connection that a replaced master has no more", "deliveries") { $0.deliverAfter(endedAt: 19.7) },
        Row("over a connection of a moment ago, which no master has", "deliveries") {
            $0.deliverAfter(endedAt: 19.9)
            $0.allowance.replacedMasters = [HistoryOfOneDay.nanos(10)...HistoryOfOneDay.nanos(19)]
        },
        Row("to a suspended device", "deliveries") { $0.deliver("e2", at: 20.1) },
        Row("none to a live device", "deliveries") {
            $0.move("d1", "fg", at: 15)
            $0.move("d1", "off", at: 40)
        },
        Row("an alert in a muted conversation", "deliveries") {
            $0.move("d1", "fg", at: 15)
            $0.state("s2", .mute(conversation: "u1_u2", level: 5, untilMs: nil), at: 15)
            $0.deliver("e2", at: 20.1)
        },
        Row("an alert of a silent message", "deliveries") {
            $0.move("d1", "fg", at: 15)
            $0.change("e2") { $0.push.isSilent = true }
            $0.deliver("e2", at: 20.1)
        },
        Row("by a strategy without connections", "deliveries") {
            $0.sources.apps[0].strategy = 2
            $0.move("d1", "fg", at: 15)
            $0.deliver("e2", at: 20.1)
        },
    ]

    static let reportRows = [
        Row("the first report of an opened push", nil) { $0.open("p1", "m1", "s2", "applied") },
        Row("a report that counts twice", "reports") {
            $0.open("p1", "m1", "s2", "applied")
            $0.open("p1", "m1", "s3", "applied")
        },
        Row("the second of two equal reports counts", nil) {
            $0.open("p1", "m1", "s2", "repeat")
            $0.open("p1", "m1", "s3", "applied")
        },
        Row("a report that is not taken", "reports") { $0.open("p1", "m1", "s2", "ignored") },
    ]

    static let staleRows = [
        Row("a stale change without a newer one", "results") {
            $0.state("s2", .showsDetail(true), at: 5)
            $0.observed.results["s2"]?.outcome = "stale"
        },
        Row("a stale change with a newer one", nil) {
            $0.state("s2", .showsDetail(true), at: 5)
            $0.observed.results["s2"]?.outcome = "stale"
            $0.state("s3", .showsDetail(true), at: 5.2)
        },
        Row("a stale read that a later one replaced by a late clock", nil) {
            $0.readLate()
            $0.readTwice()
        },
        Row("a stale read that a later one replaced", "results") { $0.readTwice() },
        Row("a stale report that a late clock makes older than the one before", nil) {
            $0.readLate(by: 5000)
            $0.reportTwice()
        },
        Row("a stale report that a late clock makes not old enough", "results") {
            $0.readLate(by: 1500)
            $0.reportTwice()
        },
        Row("a window that a late clock makes older than the one before", nil) {
            $0.readLate()
            $0.endWindow()
        },
        Row("a window that ended", "the reason") { $0.endWindow() },
        Row("a bind that a late clock makes older than the switch before", nil) {
            $0.readLate()
            $0.bindAgain()
        },
        Row("a bind after a switch is ignored", "results") { $0.bindAgain() },
        Row("a stale bind of a phone that another user took later", nil) {
            $0.allowance.mayRepeat = true
            $0.state("s2", .bind(device: "d1", token: "v1", type: .voip), at: 95)
            $0.state("s3", .bind(device: "d9", token: "t1", type: .alert), of: "u2", at: 96)
            $0.observed.results["s2"] = Observed.StateResult(atNanos: HistoryOfOneDay.nanos(98), outcome: "stale")
        },
        Row("a stale bind behind another user's newer one, which was read first", nil) { $0.bindTwice(tookAt: 96) },
        Row("a stale bind before another user's newer one", "results") { $0.bindTwice(tookAt: 99) },
        Row("a stale bind behind another user's of its version, whose first answer was lost", nil) {
            $0.bindEqually(second: "repeat")
        },
        Row("a stale bind before another user's of its version, which was stale", "results") {
            $0.bindEqually(second: "stale")
        },
        Row("a stale bind that a newer one of its device passed while slots moved", nil) {
            $0.passBind(movedUntil: 95)
        },
        Row("a stale bind that a newer one of its device passed while slots of others moved", "results") {
            $0.passBind(movedUntil: 95, tags: ["im:u2", "im:t3"])
        },
        Row("a stale bind behind a newer one of its device", "results") { $0.passBind(movedUntil: nil) },
        Row("a stale bind after slots moved", "results") { $0.passBind(movedUntil: 94.9) },
        Row("a stale bind while slots moved", "results") {
            $0.passBind(movedUntil: 95)
            $0.observed.results["s3"]?.atNanos = HistoryOfOneDay.nanos(98.1)
        },
        Row("a stale bind of a phone that another user took before", "results") {
            $0.allowance.mayRepeat = true
            $0.state("s3", .bind(device: "d9", token: "t1", type: .alert), of: "u2", at: 95)
            $0.state("s2", .bind(device: "d1", token: "v1", type: .voip), at: 96)
            $0.observed.results["s2"] = Observed.StateResult(atNanos: HistoryOfOneDay.nanos(98), outcome: "stale")
        },
    ]

    static let badgeRows = [
        Row("statistics of all outcomes", nil) { $0.observed.counted = ["im accepted": 3] },
        Row("an outcome that counts twice", "the statistics equal the results") {
            $0.observed.counted = ["im accepted": 4]
        },
        Row("a counted outcome less", "the statistics equal the results") { $0.observed.counted = ["im accepted": 2] },
        Row("an outcome less of an event that Kafka dropped", nil) {
            $0.observed.counted = ["im accepted": 2]
            $0.allowance.lostEvents = ["e1"]
        },
        Row("an expiry for all that does not count", "the statistics equal the results") {
            $0.allowance.mayRepeat = true
            $0.change("e1") {
                $0.isToGroup = true
                $0.push.expireMs = HistoryOfOneDay.ms(30)
            }
            $0.observed.pushes[0].expiration = HistoryOfOneDay.ms(30) / 1000
            $0.outcome("e1", "expired", "expired", uid: "", at: 40)
            $0.observed.counted = ["im accepted": 3]
        },
        Row("of two tries with different ends either counts", nil) {
            $0.allowance.mayRepeat = true
            $0.state("s2", .read(conversation: "u1_u2", upTo: 1), at: 28)
            $0.outcome("e1", "suppressed", "already_read", device: "d1", at: 30)
            $0.setProbe(badge: 2)
            $0.observed.counted = ["im accepted": 3]
        },
        Row("a device that the next try does not record", nil) {
            $0.allowance.mayRepeat = true
            $0.outcome("e1", "suppressed", "no_token", device: "d2", at: 30)
            $0.observed.counted = ["im accepted": 2, "im suppressed": 1]
        },
        Row("an outcome counts with each of two parked records", nil) {
            $0.parkTwice("e2")
            $0.observed.counted = ["im accepted": 4]
        },
        Row("and with no third", "the statistics equal the results") {
            $0.parkTwice("e2")
            $0.observed.counted = ["im accepted": 5]
        },
        Row("a message more", "the badge") { $0.setProbe(badge: 4) },
        Row("copies that a late clock counts twice", nil) {
            $0.readLate()
            $0.countTwice()
        },
        Row("copies that count twice", "the badge") { $0.countTwice() },
        Row("a message less", "the badge") { $0.setProbe(badge: 2) },
        Row("what was read", "the badge") { $0.state("s2", .read(conversation: "u1_u2", upTo: 1), at: 30) },
        Row("what was revoked", "the badge") {
            $0.send("e3", "r3", seq: 3, kind: .revoke, at: 30) { $0.target = "m1" }
            $0.outcome("e3", "suppressed", "no_token", at: 31)
        },
        Row("what does not count", "the badge") { $0.change("e2") { $0.push.isCounted = false } },
        Row("a report that is not taken", "the badge") {
            $0.state("s2", .report(value: 7, clientMs: HistoryOfOneDay.ms(15)), at: 15.1)
        },
        Row("a read before the report lowers nothing of it", "the badge") {
            $0.state("s2", .read(conversation: "u1_u2", upTo: 1), at: 12)
            $0.state("s3", .report(value: 7, clientMs: HistoryOfOneDay.ms(15)), at: 15.1)
            $0.setProbe(badge: 8)
        },
    ]
}
