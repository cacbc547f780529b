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
