public import EventLoop
public import Telemetry

/// A client of APNs for one endpoint and one credential: give it pushes, get one outcome for each.
///
/// Loop-bound: made, used and released on the thread of its `Loop`; calls back synchronously through its delegate. It
/// opens, fills, watches and replaces connections on its own. Within a lane pushes leave in the order of `send`, resends
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
/// **One push in flight per device is the caller's job**: two pushes for one token may travel on different connections
/// and arrive in any order.
///
/// Bounds: `APNsLimits.pushesMax` pushes are held, then `send` answers `full`; nothing is ever dropped. Every wait ends:
/// an answer by `answerNanos`, a retry by the push's own expiry, a silent connection by PING.
public final class APNsClient {
    public let limits: APNsLimits
    public let endpoint: APNsEndpoint
    /// Told of outcomes and events. Not retained, and must live as long as the client does, or be set to nil before it goes:
    /// it owns the client, as a rule. (A weak reference would slow down every retain of the delegate.)
    public unowned var delegate: (any APNsClientDelegate)?

    let loop: Loop
    let metrics: APNsMetrics
    let log: Log
    /// Read once: a renewed credential must not wait for a disk on the loop.
    private let trust: TLSTrust
    /// With what new connections are opened.
    var identity: ClientIdentity
    /// The one before, until the present one was accepted.
    var previousIdentity: ClientIdentity?
    let policy: RetryPolicy

    var table: PushTable
    var gate: CredentialGate
    var breaker: EndpointBreaker
    var limiter: InFlightLimiter
    var budget: RetryBudget
    var backoff = TokenBackoff()
    /// Tokens that APNs rejected: what is sent to them again travels apart from the others.
    var refused = TokenMemory(places: 4096)
    /// Suspects that APNs accepted: they travel with the others again.
    var confirmed = TokenMemory(places: 65_536)
    var pacer: ConnectPacer
    /// Why connections were left or the credential is refused, as APNs said it; nil once a connection is ready again.
    public internal(set) var farewell: APNsFarewell?
    /// Why there is no ready connection, as of the last one that was lost or could not be made; nil while there is one.
    public internal(set) var unusableBecause: String?
    /// How new connections last turned out to be of no use; nil once a push was accepted.
    var stall: ConnectionHealth.Suspicion?
    var pool: PoolPolicy
    var suspectPool: PoolPolicy
    var addresses = AddressBook()
    /// Of connects that failed; there is one endpoint, and one line for it.
    var connectLines = LogLimiter<UInt16>()
    /// In place of the name server; a test's network.
    var lookUp: ((String) -> [String])?
    var random: SmallRandom
    var connections: [APNsConnection] = []
    var nextSerial: Int32 = 0
    /// Bodies of error answers under way, by slot.
    var bodies: [PushTable.Slot: [UInt8]] = [:]
    var pausedReason: APNsReason?
    /// Why APNs refused the credential that was to take over, so that the one before stays in use; nil: the newest is used.
    public internal(set) var refusedReplacement: APNsReason?
    /// A push waits for another connection than the one that refused it.
    var wantsAnother = false
    /// Reasons that need an operator and when each was last logged.
    var alarmedNanos: [APNsReason: UInt64] = [:]
    var hasLoggedSkew = false
    /// Seconds by which our clock is ahead of that of APNs; nil before an answer that told its time.
    public internal(set) var clockAheadSeconds: Int64?
    /// Pushes that ended since `paceNanos`, and how many do in a second.
    var endedCount = 0
    var paceNanos: UInt64 = 0
    var perSecond = 0.0
    var wasUsable = false
    var wasFull = false
    var wereSuspectsFull = false
    /// Ordinary pushes that left since the last suspect that went with them.
    var sinceSuspect = 0
    var lastSweepMs: Int64 = 0
    /// Calls of links and sessions now on the stack: the pump runs when the outermost returns.
    private var depth = 0
    /// The end of this turn submits what waits.
    private var isPumpDue = false
    private var life = Life.new

    private var tickTimer: LoopTimer?
    private var answerTimer: LoopTimer?
    private var retryTimer: LoopTimer?
    private var connectTimer: LoopTimer?

    private enum Life { case new, running, draining, closed }

    /// A client that has not connected yet; `start()` or the first `send` begins.
    ///
    /// - Parameters:
    ///   - loop: on whose thread the client lives; the caller is on it.
    ///   - endpoint: production or sandbox, or a server of one's own.
    ///   - credential: of the team or the app, and taken over by `replaceCredential` when it is renewed.
    ///   - limits: its `problems` must be empty.
    ///   - metrics: cells of this thread.
    ///   - log: what an operator should know of connections and credentials; no token and no payload.
    ///   - delegate: hears of outcomes; not retained.
    ///   - seed: for jitter; fixed in tests.
    /// - Throws: `noTLS` when the trust store or the certificate cannot be used.
    public init(
        loop: Loop, endpoint: APNsEndpoint, credential: APNsCredential, limits: APNsLimits = APNsLimits(),
        metrics: APNsMetrics, log: Log = .off, delegate: (any APNsClientDelegate)? = nil,
        seed: UInt64 = .random(in: 0 ... .max)
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
        random = SmallRandom(seed: seed)
        tickTimer = LoopTimer(loop: loop) { [unowned self] in tick() }
        answerTimer = LoopTimer(loop: loop) { [unowned self] in answersDue() }
        retryTimer = LoopTimer(loop: loop) { [unowned self] in retriesDue() }
        connectTimer = LoopTimer(loop: loop) { [unowned self] in pumpFromTimer() }
    }

    // MARK: What callers use

    /// Pushes on their way.
    public var inFlight: Int { table.inFlightCount }
    /// Pushes that wait for a stream, a retry, their owner's check or the credential.
    public var queued: Int { table.waitingCount + table.delayedCount + table.checkingCount }
    /// Pushes that would go now, were there room on a connection, and those being checked; without the suspects, which hold
    /// up nobody.
    public var waiting: Int { table.waitingCount(.main) + table.checkingCount(.main) }
    /// Pushes that `send` would still take, suspects apart.
    public var room: Int { table.capacity - table.count }
    /// Connections can be made and carry no push: the peer allows no stream, or answers nothing.
    public var isStalled: Bool { !wasUsable && stall != nil }
    /// A connection is ready and the credential is not paused.
    public var isUsable: Bool { wasUsable && !gate.isPaused }
    /// Nothing but probes goes: no connection is ready, APNs refuses the credential, or it says that it is unavailable.
    public var isHeldUp: Bool { !wasUsable || gate.isPaused || breaker.isOpen }
    /// APNs says that it is unavailable: nothing but a probe goes.
    public var isBreakerOpen: Bool { breaker.isOpen }
    /// Why the credential is paused, if it is.
    public var credentialPause: APNsReason? { gate.isPaused ? pausedReason : nil }
    /// Ready, opening and draining connections.
    public var connectionCounts: (ready: Int, opening: Int, draining: Int) {
        connections.reduce(into: (0, 0, 0)) { counts, connection in
            if connection.machine.isReady { counts.0 += 1 }
            if connection.machine.isOpening { counts.1 += 1 }
            if connection.machine.isDraining { counts.2 += 1 }
        }
    }

    /// Sends with another credential from now on: a renewed certificate, or a key that follows the one in use.
    ///
    /// Nothing is interrupted: connections of the old credential go on until one with the new has carried an accepted push,
    /// then leave one by one. Where APNs refuses the new one while the old is good, the old one stays in use and the fault
    /// is logged. A paused credential is tried again at once.
    ///
    /// - Throws: `noTLS` when the certificate cannot be used; the old credential then stays.
    public func replaceCredential(_ credential: APNsCredential) throws(APNsFault) {
        loop.assertOnLoop()
        let fresh = try ClientIdentity(credential, for: endpoint, trust: trust)
        if previousIdentity == nil, !gate.isPaused { previousIdentity = identity }
        if gate.isPaused { previousIdentity = nil }
        identity = fresh
        refusedReplacement = nil
        for connection in connections where connection.identity !== fresh && connection.machine.isReady {
            connection.replaceCause = .credential
        }
        gate.retryNow(nowNanos: loop.nowNanos)
        pump()
    }

    /// Connects, so that the first push finds a connection. `send` does it as well.
    public func start() {
        loop.assertOnLoop()
        guard life == .new else { return }
        life = .running
        pump()
    }

    /// Takes a push, or says why not. Callers may send any number per turn: they are submitted and leave together at its
    /// end, so that no outcome comes before this returns.
    public func send(_ push: consuming Push) -> Admission {
        loop.assertOnLoop()
        if life == .new { life = .running }
        guard life == .running else { return .closed }
        if let fault = push.fault(hasToken: identity.tokens != nil) { return .unfit(fault) }
        if !backoff.isEmpty, backoff.holds(push.token) { return hold(push) }
        let route = route(of: push)
        guard table.admit(push, route: route, checkDueNanos: checkDueNanos) != nil else {
            noteFull(route)
            return .full
        }
        pumpAtEndOfTurn()
        return .taken
    }

    /// Takes no more pushes; what is held ends as always, then `drained` comes and the connections close.
    public func drain() {
        loop.assertOnLoop()
        guard life == .new || life == .running else { return }
        life = .draining
        pump()
    }

    /// Ends at once: what waits ends as `unprocessed(.closed)`, what is in flight as `unknown`. Outcomes come before
    /// this returns, unless it is called from inside an outcome.
    public func close() {
        loop.assertOnLoop()
        guard life != .closed else { return }
        life = .closed
        enter()
        for connection in connections { connection.shut() }
        connections.removeAll()
        for slot in table.all() where table[slot].place != .inFlight { finishUnsent(slot, .closed) }
        if depth == 1 {
            // Nothing of ours is on the stack, so all streams have been told.
            for slot in table.all() { finish(slot, lost(slot)) }
        }
        leave()
        for timer in [tickTimer, answerTimer, retryTimer, connectTimer] { timer?.cancel() }
        showState()
    }

    var isClosed: Bool { life == .closed }

    // MARK: Turns

    /// A link's or a session's call begins; nothing is submitted before the outermost one ends.
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

    /// Once for all pushes of a turn: the code of a submission is fetched once for all of them (callgrind's model of a
    /// cache of 32 KB: 390 lines of it per push otherwise).
    func pumpAtEndOfTurn() {
        // Inside a link's or a session's call, its end pumps.
        guard !isPumpDue, depth == 0 else { return }
        isPumpDue = true
        loop.atEndOfTurn { [weak self] in
            self?.isPumpDue = false
            self?.pump()
        }
    }

    /// `send` refused a push; `hasRoom` will tell when that is over.
    func noteFull(_ route: PushTable.Route) {
        if route == .suspect, table.suspectCount >= table.suspectsMax {
            wereSuspectsFull = true
        } else {
            wasFull = true
        }
    }

    /// What makes `hasRoom` due: a quarter is free of what was full.
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
            // A quarter of the smallest wait that is checked by ticks, so that each is met within its own quarter.
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
