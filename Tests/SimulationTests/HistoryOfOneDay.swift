// SPDX-License-Identifier: Apache-2.0
@testable import Simulation

/// A small history that keeps every rule, made by hand: the rows of `JudgeTests` break one rule each.
///
/// Times are in seconds. u1 has the phone d1 with token t1, and u2 sends.
struct HistoryOfOneDay {
    var sources = Judge.Sources()
    var observed = Observed()
    var allowance = Allowance()
    private static let second: UInt64 = 1_000_000_000
    static let originMs: Int64 = 1_800_000_000_000

    init() {
        sources.apps = [AppSettings(id: "im")]
        sources.originMs = Self.originMs
        state("s1", .bind(device: "d1", token: "t1", type: .alert), at: 1)
        send("e1", "m1", seq: 1, at: 10)
        push("m1", pid: "p1", at: 11)
        outcome("e1", "accepted", "ok", device: "d1", pid: "p1", badge: 1, at: 12)
        send("e2", "m2", seq: 2, at: 20)
        push("m2", pid: "p2", badge: 2, at: 21)
        outcome("e2", "accepted", "ok", device: "d1", pid: "p2", badge: 2, at: 22)
        send("e9", "m9", conversation: "probe", seq: 1, kind: .probe, at: 90)
        push("m9", pid: "p9", badge: 3, at: 91)
        outcome("e9", "accepted", "ok", device: "d1", pid: "p9", badge: 3, at: 92)
    }

    var violations: [Violation] {
        var judge = Judge(sources, observed: observed, allowance: allowance)
        return judge.run()
    }

    static func nanos(_ seconds: Double) -> UInt64 { UInt64(seconds * 1e9) }
    static func ms(_ seconds: Double) -> Int64 { originMs + Int64(seconds * 1000) }

    mutating func state(_ id: String, _ kind: StateSent.Kind, of uid: String = "u1", at seconds: Double) {
        sources.states.append(
            StateSent(
                kind: kind, app: "im", eventID: id, uid: uid, atNanos: Self.nanos(seconds), sentMs: Self.ms(seconds),
                words: .init(version: Int64(sources.states.count + 1))))
        observed.results[id] = Observed.StateResult(atNanos: Self.nanos(seconds + 0.5), outcome: "applied")
    }

    mutating func send(
        _ id: String, _ message: String, conversation: String = "u1_u2", seq: Int64, kind: Sent.Kind = .message,
        at seconds: Double, _ change: (inout Sent) -> Void = { _ in }
    ) {
        var event = Sent(
            kind: kind, app: "im", eventID: id, messageID: message, conversation: conversation, seq: seq,
            recipients: ["u1"], atNanos: Self.nanos(seconds), sentMs: Self.ms(seconds))
        event.push.content = "text of \(message)"
        change(&event)
        sources.sent.append(event)
    }

    /// Changes an event that was sent.
    mutating func change(_ id: String, _ change: (inout Sent) -> Void) {
        guard let index = sources.sent.firstIndex(where: { $0.eventID == id }) else { return }
        change(&sources.sent[index])
    }

    /// The producer wrote the message to two partitions.
    mutating func copy(_ id: String) {
        change(id) { ($0.isDoubled, $0.isCopied) = (true, true) }
    }

    mutating func push(
        _ message: String?, pid: String, badge: Int64? = 1, to token: String = "t1", status: Int? = 200,
        at seconds: Double, _ change: (inout Observed.Push) -> Void = { _ in }
    ) {
        var push = Observed.Push(
            atNanos: Self.nanos(seconds), token: token, pid: pid, status: status, isAnswered: true, app: "im",
            messageID: message, badge: badge, body: message.map { "N: text of \($0)" }, isMutable: true)
        change(&push)
        if message != nil, push.payload == nil { fill(&push) }
        observed.pushes.append(push)
    }

    /// APNs answers 429 to the first push, which is accepted later.
    mutating func putOff(seconds: Int) {
        (allowance.isCalm, allowance.mayWait) = (false, true)
        sources.answers = [
            AnswerPeriod(
                fromNanos: Self.nanos(10), toNanos: Self.nanos(12), status: 429, retryAfterSeconds: seconds, app: "im")
        ]
        var refused = observed.pushes[0]
        refused.status = 429
        observed.pushes[0].atNanos = Self.nanos(24)
        observed.pushes[0].badge = 2
        fill(&observed.pushes[0])
        observed.pushes.insert(refused, at: 0)
        observed.outcomes[0].atNanos = Self.nanos(24.1)
        (observed.outcomes[0].badge, observed.outcomes[0].attempts) = (2, 1)
    }

    /// What a push of profile `nim` has beside its text.
    private func fill(_ push: inout Observed.Push) {
        guard let event = sources.sent.first(where: { $0.messageID == push.messageID }) else { return }
        var aps: [String: JudgeJSON] = [
            "alert": .object(["body": .text(push.body ?? "")]), "sound": .text("default"),
            "thread-id": .text(event.conversation), "mutable-content": .number(1),
        ]
        aps["badge"] = push.badge.map { .number($0) }
        push.payload = .object([
            "aps": .object(aps), "pid": .text(push.pid), "mid": .text(event.messageID), "sessionid": .text("u2"),
            "sessiontype": .text("p2p"),
        ])
        push.topic = "com.example.im"
        push.priority = 10
        push.expiration = push.expiration ?? event.sentMs / 1000 + 86_400
        push.collapseID = event.messageID
    }

    /// Changes what a push says.
    mutating func say(_ text: String, in index: Int) {
        observed.pushes[index].body = text
        fill(&observed.pushes[index])
    }

    mutating func outcome(
        _ id: String, _ verdict: String, _ reason: String, device: String = "", pid: String = "", badge: Int64? = nil,
        uid: String = "u1", at seconds: Double
    ) {
        observed.outcomes.append(
            Observed.Outcome(
                atNanos: Self.nanos(seconds), eventID: id, uid: uid, device: device, verdict: verdict, reason: reason,
                pid: pid, badge: badge, app: "im"))
    }

    /// Takes the outcomes and pushes of an event away.
    mutating func forget(_ id: String, _ message: String) {
        observed.outcomes.removeAll { $0.eventID == id }
        observed.pushes.removeAll { $0.messageID == message }
    }

    /// A repeat of the second message, which was pushed at 21 s, finds that it is read.
    mutating func readAfterPush(refusedUntil seconds: Double) {
        allowance.mayRepeat = true
        allowance.refusals = [Self.nanos(5)...Self.nanos(seconds)]
        state("s2", .read(conversation: "u1_u2", upTo: 2), at: 30)
        outcome("e2", "suppressed", "already_read", at: 40)
        setProbe(badge: 1)
    }

    /// Two tries of an event parked it, after a fault.
    mutating func parkTwice(_ id: String) {
        allowance.mayRepeat = true
        for seconds in [25.0, 35] {
            observed.handedOn.append(Observed.HandOn(atNanos: Self.nanos(seconds), eventID: id, key: "imu1"))
        }
    }

    mutating func deliver(_ id: String, device: String = "d1", alerts: Bool = true, at seconds: Double) {
        observed.deliveries.append(
            Observed.Delivery(
                atNanos: Self.nanos(seconds), app: "im", eventID: id, uid: "u1", device: device, alerts: alerts,
                isPushed: false, wantsAck: alerts))
    }

    mutating func move(_ device: String = "d1", _ state: String, isDesktop: Bool = false, at seconds: Double) {
        sources.moves.append(
            Move(
                app: "im", uid: "u1", device: device, atNanos: Self.nanos(seconds), state: state, isDesktop: isDesktop,
                hasLocal: false, openConversation: nil))
    }
}
