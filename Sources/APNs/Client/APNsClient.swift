// SPDX-License-Identifier: Apache-2.0
public import EventLoop
public import Telemetry

/// An APNs client for one endpoint and one credential. It takes pushes and reports one outcome for each.
///
/// Loop-bound: created, used and released on the thread of its `Loop`. It calls its delegate synchronously. It opens,
/// fills, watches and replaces connections by itself. Within a lane pushes are sent in the order of `send`, resends
/// first; between lanes by their shares (`PushLane`).
///
/// ```swift
/// let client = try APNsClient(
///     loop: loop, endpoint: .production,
///     credential: .token(keyFile: "AuthKey_ABC123DEFG.p8", keyID: "ABC123DEFG", teamID: "DEF123GHIJ"),
///     metrics: APNsMetrics(registry: registry, app: "im"), delegate: owner)
/// let headers = try PushHeaders(topic: "com.example.im", pushType: .alert)
/// let admission = client.send(Push(tag: 1, token: token, headers: headers, id: id, payload: json))
/// ```
///
/// **The caller must send one push per device at a time**: two pushes for one token may use different connections and
/// arrive in any order.
///
/// Bounds: it holds `APNsLimits.pushesMax` pushes, then `send` returns `full`; nothing is ever dropped. Every wait
/// ends: an answer by `answerNanos`, a retry by the push's own expiry, a silent connection by PING.
public final class APNsClient {
    let context: ClientContext
    private let loop: Loop
    let credential: CredentialInUse
    let pushes: HeldPushes
    let pool: ConnectionPool
    let attempts: PushAttempts
    /// Number of link and session calls on the stack. The pump runs when the outermost returns.
    private var depth = 0
    /// The end of this turn submits waiting pushes.
    private var isPumpDue = false
    private var isTickingFast = false
    private var life = Life.new

    private var tickTimer: LoopTimer?
    private var answerTimer: LoopTimer?
    private var retryTimer: LoopTimer?
    private var connectTimer: LoopTimer?

    private enum Life { case new, running, draining, closed }

    /// Creates a client that has not connected yet. `start()` or the first `send` connects.
    ///
    /// - Parameters:
    ///   - loop: the client's loop. The caller must be on its thread.
    ///   - endpoint: production, sandbox, or another server.
    ///   - credential: of the team or the app. `replaceCredential` changes it later. Nil: none can be used now. Then pushes wait,
    ///     and nothing connects, until `replaceCredential`.
    ///   - limits: `problems` must be empty.
    ///   - metrics: counters for this thread.
    ///   - log: receives connection and credential events; no token and no payload.
    ///   - delegate: receives outcomes; not retained.
    ///   - seed: for jitter; nil: the loop gives one.
    /// - Throws: `noTLS` if the trust store or the certificate cannot be used.
    public init(
        loop: Loop, endpoint: APNsEndpoint, credential: APNsCredential?, limits: APNsLimits = APNsLimits(),
        metrics: APNsMetrics, log: Log = .off, delegate: (any APNsClientDelegate)? = nil, seed: UInt64? = nil
    ) throws(APNsFault) {
        loop.assertOnLoop()
        precondition(limits.problems.isEmpty, "APNs limits do not fit together: \(limits.problems)")
        self.loop = loop
        context = ClientContext(
            loop: loop, endpoint: endpoint, limits: limits, metrics: metrics, log: log, delegate: delegate, seed: seed)
        self.credential = try CredentialInUse(credential, context)
        pushes = HeldPushes(context)
        pool = ConnectionPool(context, credential: self.credential, pushes: pushes)
        attempts = PushAttempts(context, credential: self.credential, pushes: pushes, pool: pool)
        context.client = Unmanaged.passUnretained(self)
        tickTimer = LoopTimer(loop: loop) { [unowned self] in tick() }
        answerTimer = LoopTimer(loop: loop) { [unowned self] in answersDue() }
        retryTimer = LoopTimer(loop: loop) { [unowned self] in retriesDue() }
        connectTimer = LoopTimer(loop: loop) { [unowned self] in pump() }
    }

    // MARK: What callers use

    public var limits: APNsLimits { context.limits }
    public var endpoint: APNsEndpoint { context.endpoint }
    /// Receives outcomes and events. Not retained. It must live as long as the client, or be set to nil before it is
    /// released; usually it owns the client. (A weak reference would slow down every retain of the delegate.)
    public var delegate: (any APNsClientDelegate)? {
        get { context.delegate }
        set { context.delegate = newValue }
    }
    /// APNs' reason for ending connections or refusing the credential; nil when a connection is ready again.
    public var farewell: APNsFarewell? { pool.usability.farewell }
    /// The reason why no connection is ready, from the last one that was lost or failed; nil while one is ready.
    public var unusableBecause: String? { pool.usability.unusableBecause }
    /// APNs' reason for refusing a new credential, so that the previous one stays in use; nil if the newest is used.
    public var refusedReplacement: APNsReason? { credential.refusedReplacement }
    /// Our clock minus that of APNs in seconds; nil before an answer with a time.
    public var clockAheadSeconds: Int64? { credential.clockAheadSeconds }
    /// Pushes on a stream.
    public var inFlight: Int { pushes.table.inFlightCount }
    /// Pushes that wait for a stream, a retry, their owner's check or the credential.
    public var queued: Int { pushes.queuedCount }
    /// Pushes that would be sent now if a connection had room, and pushes being checked. Without suspect pushes, which
    /// block no others.
    public var waiting: Int { pushes.table.waitingCount(.main) + pushes.table.checkingCount(.main) }
    /// Pushes that `send` would still accept, not counting suspect ones.
    public var room: Int { pushes.table.capacity - pushes.table.count }
    /// Connections can be made and carry no push: the peer allows no stream, or answers nothing.
    public var isStalled: Bool { !pool.usability.isUsable && pool.usability.stall != nil }
    /// Devices that APNs wants left alone for now (429 TooManyRequests). Goes through all that were lately.
    public var heldDevices: Int { pushes.backoff.heldCount(nowNanos: loop.nowNanos) }
    /// A connection is ready and the credential is not paused.
    public var isUsable: Bool { pool.usability.isUsable && !credential.gate.isPaused }
    /// Only probes are sent: no connection is ready, APNs refuses the credential, or APNs is unavailable.
    public var isHeldUp: Bool { !isUsable || isBreakerOpen }
    /// APNs reports that it is unavailable. Only probes are sent.
    public var isBreakerOpen: Bool { attempts.breaker.isOpen }
    /// The reason why the credential is paused; nil if it is not.
    public var credentialPause: APNsReason? { credential.pause }
    /// No credential can be used: pushes wait for `replaceCredential`.
    public var lacksCredential: Bool { credential.identity.isAbsent }
    /// Ready, opening and draining connections.
    public var connectionCounts: (ready: Int, opening: Int, draining: Int) { pool.counts }

    /// Sends with another credential from now on: a renewed certificate, or a new key.
    ///
    /// Nothing is interrupted: connections of the old credential continue until a connection with the new one has
    /// carried an accepted push, then close one by one. If APNs refuses the new credential while the old one works, the
    /// old one stays in use and the fault is logged. A paused credential is tried again at once.
    ///
    /// - Throws: `noTLS` if the certificate cannot be used. The old credential then remains.
    public func replaceCredential(_ credential: APNsCredential) throws(APNsFault) {
        loop.assertOnLoop()
        try self.credential.replace(with: credential)
        pool.replaceOthers()
        pump()
    }

    /// Connects in advance, so that the first push finds a connection. `send` connects too.
    public func start() {
        loop.assertOnLoop()
        guard life == .new else { return }
        life = .running
        pump()
    }

    /// Accepts a push, or returns why not. Any number of pushes per turn: they are submitted and sent together at its
    /// end, so no outcome comes before this returns.
    public func send(_ push: consuming Push) -> Admission { send(push, canRenew: false) }

    /// Accepts a push, or returns why not, as `send(_:)` does.
    ///
    /// - Parameters:
    ///   - push: The push, whole.
    ///   - canRenew: Its owner answers a check by `renew` where `lacksContent` says so. While only probes are sent
    ///     (`isHeldUp`), payload, headers and token of such a push are not kept.
    public func send(_ push: consuming Push, canRenew: Bool) -> Admission {
        loop.assertOnLoop()
        if life == .new { life = .running }
        guard life == .running else { return .closed }
        if let fault = push.fault(hasToken: credential.hasToken) { return .unfit(fault) }
        let admission = pushes.admit(push, isBare: canRenew && isHeldUp)
        switch admission {
        case .taken: pumpAtEndOfTurn()
        case .held: armTimers()
        case .full, .closed, .unfit: break
        }
        return admission
    }

    /// Accepts no more pushes. Held pushes end normally, then `drained` is reported and the connections close.
    public func drain() {
        loop.assertOnLoop()
        guard life == .new || life == .running else { return }
        life = .draining
        pump()
    }

    /// Ends at once: waiting pushes end as `unprocessed(.closed)`, pushes in flight as `unknown`. Outcomes are reported
    /// before this returns, unless it is called inside an outcome.
    public func close() {
        loop.assertOnLoop()
        guard life != .closed else { return }
        life = .closed
        enter()
        attempts.close(isOutermost: depth == 1)
        leave()
        for timer in [tickTimer, answerTimer, retryTimer, connectTimer] { timer?.cancel() }
        showState()
    }

    // MARK: Answers to checks

    /// Whether only `renew` can send the push: its content was not kept. False for a stale ticket.
    public func lacksContent(_ ticket: PushTicket) -> Bool {
        guard let slot = pushes.table.slot(of: ticket) else { return false }
        return pushes.table.lacksContent(slot)
    }

    /// Sends the push unchanged, before the others in its lane. A stale ticket has no effect. A push that lacks its content ends
    /// as `unprocessed(.notSent)`.
    public func confirm(_ ticket: PushTicket) {
        loop.assertOnLoop()
        guard let slot = pushes.table.slot(of: ticket) else { return }
        if pushes.table.lacksContent(slot) { return pushes.finishUnsent(slot, .notSent) }
        pushes.putBack(slot)
        pumpAtEndOfTurn()
    }

    /// Sends the push with another payload, headers, lane or expiry, before the others in its lane. Its previous
    /// attempts still count. A stale ticket has no effect.
    ///
    /// - Parameters:
    ///   - ticket: identifies the push that was set aside.
    ///   - push: must have the tag and id of the replaced push. A push that APNs can never accept (`PushFault`) ends
    ///     before this returns, as `unprocessed(.notSent)` if no attempt of it may have arrived.
    public func renew(_ ticket: PushTicket, with push: consuming Push) {
        loop.assertOnLoop()
        guard let slot = pushes.table.slot(of: ticket) else { return }
        precondition(
            push.tag == pushes.table.tag(slot) && push.id == pushes.table.id(slot),
            "a push is renewed under its own tag and id")
        if push.fault(hasToken: credential.hasToken) != nil { return pushes.finishUnsent(slot, .notSent) }
        pushes.renew(slot, with: push)
        pumpAtEndOfTurn()
    }

    /// The number of its requests so far; 0 for a stale ticket.
    public func attempts(of ticket: PushTicket) -> Int {
        loop.assertOnLoop()
        return pushes.table.slot(of: ticket).map { Int(pushes.table[$0].history.attempts) } ?? 0
    }

    /// Removes the push without an outcome. Returns false for a stale ticket: the outcome has come or will come.
    @discardableResult
    public func withdraw(_ ticket: PushTicket) -> Bool {
        loop.assertOnLoop()
        guard let slot = pushes.table.slot(of: ticket) else { return false }
        _ = pushes.remove(slot)
        pumpAtEndOfTurn()
        return true
    }

    /// Takes back every push without a stream (waiting, delayed or being checked) with a wanted tag. No outcome follows
    /// for these. Pushes on a stream end normally.
    ///
    /// - Parameter isWanted: called once for each push without a stream. Must not call the client.
    /// - Returns: the tags, in no order. `mayHaveArrived`: the result of an earlier attempt is unknown.
    public func withdrawUnsent(where isWanted: (UInt64) -> Bool) -> [(tag: UInt64, mayHaveArrived: Bool)] {
        loop.assertOnLoop()
        let withdrawn = pushes.withdrawUnsent(where: isWanted)
        if !withdrawn.isEmpty { pumpAtEndOfTurn() }
        return withdrawn
    }

    // MARK: Turns

    /// A call of a link or session begins. Nothing is submitted before the outermost one ends.
    func enter() { depth += 1 }

    func leave() {
        depth -= 1
        if depth == 0, life != .closed { pump() }
    }

    func pump() {
        guard depth == 0, life != .new, life != .closed else { return }
        depth += 1
        pushes.noteRoom()
        attempts.submitWaiting()
        if let atNanos = pool.maintain() { arm(connectTimer, atNanos) }
        depth -= 1
        armTimers()
        if life == .draining, pushes.table.count == 0 {
            close()
            context.changed(.drained)
        }
    }

    /// Runs once for all pushes of a turn, so that the code of a submission is fetched once (callgrind's model of a 32
    /// KB cache: otherwise 390 lines of it per push).
    private func pumpAtEndOfTurn() {
        // Inside a call of a link or session, its end runs the pump.
        guard !isPumpDue, depth == 0 else { return }
        isPumpDue = true
        loop.atEndOfTurn { [weak self] in
            self?.isPumpDue = false
            self?.pump()
        }
    }

    private func armTimers() {
        let isBusy = pushes.table.count > 0 || pool.connections.contains { $0.machine.isOpening }
        if let tickTimer {
            // A quarter of the smallest tick-driven wait, so that each wait is met within a quarter of its length.
            let smallest = min(
                context.limits.pingAfterNanos, context.limits.pingTimeoutNanos, context.limits.stallNanos)
            let busyNanos = min(smallest / 4, 250_000_000)
            if !tickTimer.isArmed || (isBusy && !isTickingFast) {
                isTickingFast = isBusy
                tickTimer.arm(afterNanos: isBusy ? max(busyNanos, 1_000_000) : 5_000_000_000)
            }
        }
        if let oldest = pushes.table.oldestInFlight, answerTimer?.isArmed == false {
            arm(answerTimer, pushes.table[oldest].submittedNanos &+ context.limits.answerNanos)
        }
        if let due = pushes.table.nextDueNanos { arm(retryTimer, due) }
    }

    private func arm(_ timer: LoopTimer?, _ dueNanos: UInt64) {
        let now = loop.nowNanos
        timer?.arm(afterNanos: dueNanos > now ? dueNanos - now : 0)
    }

    // MARK: Timers (tests with a clock of their own call these)

    func answersDue() {
        enter()
        attempts.timeOutAnswers()
        leave()
    }

    func retriesDue() {
        let woken = pushes.table.wakeDue(nowNanos: loop.nowNanos)
        if woken > 0 { pump() } else { armTimers() }
    }

    func tick() {
        isTickingFast = false
        enter()
        pushes.measurePace()
        pool.tick()
        pushes.tick()
        leave()
        showState()
    }

    private func showState() {
        pushes.showState()
        credential.showState()
        pool.showState()
        attempts.showState()
    }
}
