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

extension HistoryOfOneDay {
    /// A worker's clock is late, and records have no usable Kafka time.
    mutating func readLate(by ms: Int64 = 45_000, hasOddTimes: Bool = true) {
        (allowance.clockSlackMs, allowance.unseenClockMs) = (ms, ms)
        allowance.hasOddTimes = hasOddTimes
    }

    /// The second message, which was sent at the beginning of a second, has the life of one that was sent a millisecond before.
    mutating func beginEarlier(hasOddTimes: Bool) {
        allowance.hasOddTimes = hasOddTimes
        observed.pushes[1].expiration = observed.pushes[1].expiration.map { $0 - 1 }
    }

    /// A Live Activity has an update with a time so late.
    mutating func update(secondsLate: Int64) {
        state("s2", .bind(device: "d1", token: "a1", type: .activity), at: 2)
        send("e3", "e3", conversation: "a", seq: 0, kind: .activity, at: 50) {
            $0.activity = Sent.Activity(id: "a", step: .update)
        }
        push("e3", pid: "p3", badge: nil, to: "a1", at: 51) {
            $0.payload = .object([
                "aps": .object([
                    "timestamp": .number(Self.ms(50) / 1000 - secondsLate), "event": .text("update"),
                    "content-state": .object(["event": .text("e3")]),
                ])
            ])
            ($0.type, $0.topic, $0.priority) = ("liveactivity", "com.example.im.push-type.liveactivity", 10)
            $0.body = nil
        }
        outcome("e3", "accepted", "ok", device: "d1", pid: "p3", at: 52)
    }

    /// The phone waits for a desktop, which is live until the last message.
    mutating func waitForDesktop() {
        move("pc", "fg", isDesktop: true, at: 15)
        move("pc", "off", isDesktop: true, at: 60)
        state("s2", .desktopPolicy(pushes: false, holdSeconds: 0), at: 16)
    }

    /// Redis returns with older data, without the lease of the gateway.
    mutating func loseLease(renewedAt seconds: Double) {
        allowance.losses = [Loss(fromNanos: Self.nanos(17), toNanos: Self.nanos(18), tags: ["gw-1"])]
        sources.renewals["gw-1"] = [Self.nanos(14), Self.nanos(seconds)]
    }

    /// Two reads of the first message; the earlier one is stale.
    mutating func readTwice() {
        state("s2", .read(conversation: "u1_u2", upTo: 1), at: 30)
        state("s3", .read(conversation: "u1_u2", upTo: 1), at: 35)
        observed.results["s2"] = Observed.StateResult(atNanos: Self.nanos(40), outcome: "stale")
        setProbe(badge: 2)
    }

    /// A window begins and ends, and denies the second message.
    mutating func endWindow() {
        state("s2", .quiet(.init(isOn: true, start: 0, end: 1439, level: 5)), at: 15)
        state("s3", .quiet(.init(isOn: false, start: 0, end: 1439, level: 5)), at: 16)
        deny("dnd")
    }

    /// The phone goes to another user and back; the second bind is ignored.
    mutating func bindAgain() {
        state("s2", .bind(device: "x1", token: "t1", type: .alert), of: "u2", at: 30)
        state("s3", .bind(device: "d1", token: "t1", type: .alert), at: 35)
        observed.results["s3"]?.outcome = "ignored"
        forget("e9", "m9")
        outcome("e9", "suppressed", "no_token", at: 92)
    }

    /// A master was replaced. The second message goes over a connection that its device had before.
    mutating func deliverAfter(endedAt seconds: Double) {
        allowance.mayRepeat = true
        allowance.replacedMasters = [Self.nanos(10)...Self.nanos(30)]
        move("d1", "fg", at: 15)
        move("d1", "fg", at: seconds)
        sources.moves[1].connection = 2
        deliver("e2", at: 20.1)
        observed.deliveries[0].gateway = "gw-1"
        observed.deliveries[0].connection = 1
        observed.deliveries[0].ackByMs = Self.ms(28.1)
    }

    /// Two processes read the second message in two partitions. APNs refuses the push of one for a time.
    mutating func putOffOneCopy() {
        copy("e2")
        allowance.hadOneProcess = false
        sources.answers = [AnswerPeriod(fromNanos: 0, toNanos: .max, status: 429, retryAfterSeconds: 20)]
        push("m2", pid: "p2", badge: 2, status: 429, at: 21)
        push("m2", pid: "p2", badge: 2, at: 21.5)
    }

    /// Two processes read the first message in two partitions. By the clock of one it has expired.
    mutating func denyOneCopy() {
        copy("e1")
        (allowance.hadOneProcess, allowance.clockSlackMs) = (false, 40_000)
        change("e1") { $0.push.expireMs = Self.ms(30) }
        observed.pushes[0].expiration = Self.ms(30) / 1000
        outcome("e1", "expired", "expired", at: 12)
    }

    /// Two users bind a token; the older bind is stale.
    mutating func bindTwice(tookAt seconds: Double) {
        state("s2", .bind(device: "d2", token: "t2", type: .voip), at: 95)
        state("s3", .bind(device: "d9", token: "t2", type: .voip), of: "u2", at: seconds)
        observed.results["s2"] = Observed.StateResult(atNanos: Self.nanos(98), outcome: "stale")
    }

    /// Two users bind a token in one version. The first bind is stale.
    mutating func bindEqually(second outcome: String) {
        allowance.mayRepeat = true
        bindTwice(tookAt: 96)
        let places = sources.states.indices.suffix(2)
        for place in places { sources.states[place].words.version = 9 }
        observed.results["s3"] = Observed.StateResult(atNanos: Self.nanos(97), outcome: outcome)
    }

    /// A device has two new tokens. The first bind is stale, and slots of Redis moved until then.
    mutating func passBind(movedUntil seconds: Double?, tags: Set<String> = ["im:t2"]) {
        allowance.slotMoves = seconds.map { [SlotMove(nanos: Self.nanos(90)...Self.nanos($0), tags: tags)] } ?? []
        state("s2", .bind(device: "d2", token: "t2", type: .voip), at: 95)
        state("s3", .bind(device: "d2", token: "t3", type: .voip), at: 96)
        for id in ["s2", "s3"] {
            observed.results[id] = Observed.StateResult(
                atNanos: Self.nanos(98), outcome: id == "s2" ? "stale" : "applied")
        }
    }

    /// Two processes read the second message in two partitions, and both count it.
    mutating func countTwice() {
        copy("e2")
        allowance.hadOneProcess = false
        setProbe(badge: 4)
    }

    /// Two reports; the later one is stale.
    mutating func reportTwice() {
        state("s2", .report(value: 7, clientMs: Self.ms(13)), at: 13.1)
        state("s3", .report(value: 7, clientMs: Self.ms(15)), at: 15.1)
        observed.results["s3"]?.outcome = "stale"
    }

    mutating func open(_ pid: String, _ message: String, _ id: String, _ outcome: String) {
        state(id, .pushReport(device: "d1", pid: pid, messageID: message, isOpened: true), at: 15)
        observed.results[id]?.outcome = outcome
    }
}
