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
    public let limits: APNsLimits
    public let endpoint: APNsEndpoint
    /// Receives outcomes and events. Not retained. It must live as long as the client, or be set to nil before it is
    /// released; usually it owns the client. (A weak reference would slow down every retain of the delegate.)
    public unowned var delegate: (any APNsClientDelegate)?

    let loop: Loop
    let metrics: APNsMetrics
    let log: Log
    /// Read once: a renewed credential must not wait for a disk on the loop.
    private let trust: TLSTrust
    /// The credential for new connections.
    var identity: ClientIdentity
    /// The previous credential, until the present one was accepted.
    var previousIdentity: ClientIdentity?
    let policy: RetryPolicy

    var table: PushTable
    var gate: CredentialGate
    var breaker: EndpointBreaker
    var limiter: InFlightLimiter
    var budget: RetryBudget
    var backoff = TokenBackoff()
    /// Tokens that APNs rejected. Pushes to them use separate connections.
    var refused = TokenMemory(places: 4096)
    /// Suspect tokens that APNs accepted. Pushes to them use the main connections again.
    var confirmed = TokenMemory(places: 65_536)
    var pacer: ConnectPacer
    /// APNs' reason for ending connections or refusing the credential; nil when a connection is ready again.
    public internal(set) var farewell: APNsFarewell?
    /// The reason why no connection is ready, from the last one that was lost or failed; nil while one is ready.
    public internal(set) var unusableBecause: String?
    /// How new connections last turned out to be of no use; nil once a push was accepted.
    var stall: ConnectionHealth.Suspicion?
    var pool: PoolPolicy
    var suspectPool: PoolPolicy
    var addresses = AddressBook()
    /// Limits the log lines of failed connects: there is one endpoint, so one line for it.
    var connectLines = LogLimiter<UInt16>()
    /// Replaces the name server in tests.
    var lookUp: ((String) -> [String])?
    var random: SmallRandom
    var connections: [APNsConnection] = []
    var nextSerial: Int32 = 0
    /// Bodies of incomplete error answers, by slot.
    var bodies: [PushTable.Slot: [UInt8]] = [:]
    var pausedReason: APNsReason?
    /// APNs' reason for refusing a new credential, so that the previous one stays in use; nil if the newest is used.
    public internal(set) var refusedReplacement: APNsReason?
    /// A push waits for a connection other than the one that refused it.
    var wantsAnother = false
    /// Reasons that need an operator, with the time of the last log line.
    var alarmedNanos: [APNsReason: UInt64] = [:]
    var hasLoggedSkew = false
    /// Our clock minus that of APNs in seconds; nil before an answer with a time.
    public internal(set) var clockAheadSeconds: Int64?
    /// Pushes that ended since `paceNanos`, and their number per second.
    var endedCount = 0
    var paceNanos: UInt64 = 0
    var perSecond = 0.0
    var wasUsable = false
    var wasFull = false
    var wereSuspectsFull = false
    /// Ordinary pushes sent since the last suspect push on the main route.
    var sinceSuspect = 0
    var lastSweepMs: Int64 = 0
    /// Number of link and session calls on the stack. The pump runs when the outermost returns.
    private var depth = 0
    /// The end of this turn submits waiting pushes.
    private var isPumpDue = false
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
        metrics: APNsMetrics, log: Log = .off, delegate: (any APNsClientDelegate)? = nil,
        seed: UInt64? = nil
    ) throws(APNsFault) {
        loop.assertOnLoop()
        precondition(limits.problems.isEmpty, "APNs limits do not fit together: \(limits.problems)")
        self.loop = loop
        self.endpoint = endpoint
        self.limits = limits
        self.metrics = metrics
        self.log = log
        self.delegate = delegate
        trust = try ClientIdentity.trust(of: endpoint)
        identity = try ClientIdentity(credential, for: endpoint, trust: trust)
        policy = RetryPolicy(limits)
        table = PushTable(capacity: limits.pushesMax, shares: limits.lanes)
        gate = CredentialGate(probeNanos: limits.credentialProbeNanos)
        breaker = EndpointBreaker(
            threshold: limits.breakerAnswers,
            backoff: limits.breakerBackoff.capped(atNanos: limits.waitingRetryMaxNanos))
        limiter = InFlightLimiter(start: limits.inFlightStart, ceiling: limits.inFlightMax)
        budget = RetryBudget(inFlightMax: limits.inFlightMax, nowNanos: loop.nowNanos)
        pacer = ConnectPacer(
            spacingNanos: limits.connectSpacingNanos, refillSpacingNanos: limits.refillSpacingNanos,
            burst: limits.connectBurst, refillNanos: limits.connectRefillNanos, backoff: limits.connectBackoff,
            waitingCapNanos: limits.waitingRetryMaxNanos)
        pool = PoolPolicy(limits)
        suspectPool = PoolPolicy(limits, route: .suspect)
        random = SmallRandom(seed: seed ?? loop.makeSeed())
        tickTimer = LoopTimer(loop: loop) { [unowned self] in tick() }
        answerTimer = LoopTimer(loop: loop) { [unowned self] in answersDue() }
        retryTimer = LoopTimer(loop: loop) { [unowned self] in retriesDue() }
        connectTimer = LoopTimer(loop: loop) { [unowned self] in pumpFromTimer() }
    }

    // MARK: What callers use

    /// Pushes on a stream.
    public var inFlight: Int { table.inFlightCount }
    /// Pushes that wait for a stream, a retry, their owner's check or the credential.
    public var queued: Int { table.waitingCount + table.delayedCount + table.checkingCount }
    /// Pushes that would be sent now if a connection had room, and pushes being checked. Without suspect pushes, which
    /// block no others.
    public var waiting: Int { table.waitingCount(.main) + table.checkingCount(.main) }
    /// Pushes that `send` would still accept, not counting suspect ones.
    public var room: Int { table.capacity - table.count }
    /// Connections can be made and carry no push: the peer allows no stream, or answers nothing.
    public var isStalled: Bool { !wasUsable && stall != nil }
    /// Devices that APNs wants left alone for now (429 TooManyRequests). Goes through all that were lately.
    public var heldDevices: Int { backoff.heldCount(nowNanos: loop.nowNanos) }
    /// A connection is ready and the credential is not paused.
    public var isUsable: Bool { wasUsable && !gate.isPaused }
    /// Only probes are sent: no connection is ready, APNs refuses the credential, or APNs is unavailable.
    public var isHeldUp: Bool { !wasUsable || gate.isPaused || breaker.isOpen }
    /// APNs reports that it is unavailable. Only probes are sent.
    public var isBreakerOpen: Bool { breaker.isOpen }
    /// The reason why the credential is paused; nil if it is not.
    public var credentialPause: APNsReason? { gate.isPaused ? pausedReason : nil }
    /// No credential can be used: pushes wait for `replaceCredential`.
    public var lacksCredential: Bool { identity.isAbsent }
    /// Until there is a credential, it counts as one that may send everything.
    var hasToken: Bool { identity.tokens != nil || lacksCredential }
    /// Ready, opening and draining connections.
    public var connectionCounts: (ready: Int, opening: Int, draining: Int) {
        connections.reduce(into: (0, 0, 0)) { counts, connection in
            if connection.machine.isReady { counts.0 += 1 }
            if connection.machine.isOpening { counts.1 += 1 }
            if connection.machine.isDraining { counts.2 += 1 }
        }
    }

    /// Sends with another credential from now on: a renewed certificate, or a new key.
    ///
    /// Nothing is interrupted: connections of the old credential continue until a connection with the new one has
    /// carried an accepted push, then close one by one. If APNs refuses the new credential while the old one works, the
    /// old one stays in use and the fault is logged. A paused credential is tried again at once.
    ///
    /// - Throws: `noTLS` if the certificate cannot be used. The old credential then remains.
    public func replaceCredential(_ credential: APNsCredential) throws(APNsFault) {
        loop.assertOnLoop()
        let fresh = try ClientIdentity(credential, for: endpoint, trust: trust)
        if previousIdentity == nil, !gate.isPaused, !lacksCredential { previousIdentity = identity }
        if gate.isPaused { previousIdentity = nil }
        identity = fresh
        refusedReplacement = nil
        for connection in connections where connection.identity !== fresh && connection.machine.isReady {
            connection.replaceCause = .credential
        }
        gate.retryNow(nowNanos: loop.nowNanos)
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
        if let fault = push.fault(hasToken: hasToken) { return .unfit(fault) }
        if !backoff.isEmpty, backoff.holds(push.token) { return hold(push) }
        let route = route(of: push)
        guard let slot = table.admit(push, route: route, checkDueNanos: checkDueNanos) else {
            noteFull(route)
            return .full
        }
        if canRenew, isHeldUp { table.dropContent(slot) }
        pumpAtEndOfTurn()
        return .taken
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
        for connection in connections { connection.shut() }
        connections.removeAll()
        for slot in table.all() where table[slot].place != .inFlight { finishUnsent(slot, .closed) }
        if depth == 1 {
            // No call of ours is on the stack, so all streams have been reported.
            for slot in table.all() { finish(slot, lost(slot)) }
        }
        leave()
        for timer in [tickTimer, answerTimer, retryTimer, connectTimer] { timer?.cancel() }
        showState()
    }

    var isClosed: Bool { life == .closed }

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
        if wasFull || wereSuspectsFull { noteRoom() }
        submitWaiting()
        maintainPool()
        depth -= 1
        armTimers()
        if life == .draining, table.count == 0 {
            close()
            delegate?.apns(self, stateChanged: .drained)
        }
    }

    /// Runs once for all pushes of a turn, so that the code of a submission is fetched once (callgrind's model of a 32
    /// KB cache: otherwise 390 lines of it per push).
    func pumpAtEndOfTurn() {
        // Inside a call of a link or session, its end runs the pump.
        guard !isPumpDue, depth == 0 else { return }
        isPumpDue = true
        loop.atEndOfTurn { [weak self] in
            self?.isPumpDue = false
            self?.pump()
        }
    }

    /// `send` refused a push. `hasRoom` will report the end of this state.
    func noteFull(_ route: PushTable.Route) {
        if route == .suspect, table.suspectCount >= table.suspectsMax {
            wereSuspectsFull = true
        } else {
            wasFull = true
        }
    }

    /// `hasRoom` is due when a quarter of the full part is free.
    func noteRoom() {
        let hasRoom = wasFull && table.count <= table.capacity / 4 * 3
        let haveSuspectsRoom = wereSuspectsFull && table.suspectCount <= table.suspectsMax / 4 * 3
        guard hasRoom || haveSuspectsRoom else { return }
        if hasRoom { wasFull = false }
        if haveSuspectsRoom { wereSuspectsFull = false }
        delegate?.apns(self, stateChanged: .hasRoom)
    }

    private func pumpFromTimer() { pump() }

    func armTimers() {
        let now = loop.nowNanos
        let isBusy = table.count > 0 || connections.contains { $0.machine.isOpening }
        if let tickTimer {
            // A quarter of the smallest tick-driven wait, so that each wait is met within a quarter of its length.
            let smallest = min(limits.pingAfterNanos, limits.pingTimeoutNanos, limits.stallNanos)
            let busyNanos = min(smallest / 4, 250_000_000)
            if !tickTimer.isArmed || (isBusy && !isTickingFast) {
                isTickingFast = isBusy
                tickTimer.arm(afterNanos: isBusy ? max(busyNanos, 1_000_000) : 5_000_000_000)
            }
        }
        if let oldest = table.oldestInFlight, answerTimer?.isArmed == false {
            let due = table[oldest].submittedNanos &+ limits.answerNanos
            answerTimer?.arm(afterNanos: due > now ? due - now : 0)
        }
        if let due = table.nextDueNanos { retryTimer?.arm(afterNanos: due > now ? due - now : 0) }
    }

    private var isTickingFast = false

    func wakeForConnect(atNanos: UInt64) {
        let now = loop.nowNanos
        connectTimer?.arm(afterNanos: atNanos > now ? atNanos - now : 0)
    }

    // MARK: Timers (tests with a clock of their own call these)

    func answersDue() {
        enter()
        timeOutAnswers()
        leave()
    }

    func retriesDue() {
        let woken = table.wakeDue(nowNanos: loop.nowNanos)
        if woken > 0 { pump() } else { armTimers() }
    }

    func tick() {
        isTickingFast = false
        enter()
        measurePace()
        tickConnections()
        sweepExpired()
        backoff.sweep(nowNanos: loop.nowNanos)
        leave()
        showState()
    }
}
