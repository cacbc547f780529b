// SPDX-License-Identifier: Apache-2.0
import EventLoop
import HTTP2
import Telemetry

/// The connections of a client, when they are opened, checked, drained and closed: the layer above `HeldPushes` and
/// `CredentialInUse`.
///
/// Which push goes where is decided above it.
final class ConnectionPool {
    private(set) var connections: [APNsConnection] = []
    private(set) var usability = Usability()
    /// Replaces the name server in tests.
    var lookUp: ((String) -> [String])?
    private var policy: PoolPolicy
    private var suspectPolicy: PoolPolicy
    private var pacer: ConnectPacer
    private var addresses = AddressBook()
    /// Limits the log lines of failed connects: there is one endpoint, so one line for it.
    private var connectLines = LogLimiter<UInt16>()
    private var lastSerial: Int32 = 0
    /// A push waits for a connection other than the one that refused it.
    private var wantsAnother = false
    private let context: ClientContext
    private let credential: CredentialInUse
    private let pushes: HeldPushes

    init(_ context: ClientContext, credential: CredentialInUse, pushes: HeldPushes) {
        self.context = context
        self.credential = credential
        self.pushes = pushes
        let limits = context.limits
        pacer = ConnectPacer(
            spacingNanos: limits.connectSpacingNanos, refillSpacingNanos: limits.refillSpacingNanos,
            burst: limits.connectBurst, refillNanos: limits.connectRefillNanos, backoff: limits.connectBackoff,
            waitingCapNanos: limits.waitingRetryMaxNanos)
        policy = PoolPolicy(limits)
        suspectPolicy = PoolPolicy(limits, route: .suspect)
    }

    private var now: UInt64 { context.loop.nowNanos }

    /// Ready, opening and draining connections.
    var counts: (ready: Int, opening: Int, draining: Int) {
        connections.reduce(into: (0, 0, 0)) { counts, connection in
            if connection.machine.isReady { counts.0 += 1 }
            if connection.machine.isOpening { counts.1 += 1 }
            if connection.machine.isDraining { counts.2 += 1 }
        }
    }

    // MARK: Connections for a push

    /// The least loaded connection of the route that can carry the push. Avoids the connection that refused it and
    /// connections with a pending replacement if there is another (so the next push proves the successor). Never a
    /// frozen connection.
    func choose(_ route: PushTable.Route, bytes: Int, avoid: Int32) -> APNsConnection? {
        var best: APNsConnection?
        var second: APNsConnection?
        for connection in connections where connection.route == route && connection.canCarry(bytes) {
            if connection.isFrozen { continue }
            if connection.serial == avoid || connection.isReplacing {
                second = connection
            } else if best == nil || connection.machine.inFlight < best?.machine.inFlight ?? 0 {
                best = connection
            }
        }
        return best ?? second
    }

    /// The number of pushes of this size that may be sent now.
    func room(_ route: PushTable.Route, bytes: Int) -> Int {
        var room = 0
        for connection in connections where connection.route == route && !connection.isFrozen {
            room += connection.room(for: bytes)
        }
        return room
    }

    /// Whether a push that a connection refused can go now, and not a moment later. If not, the pool opens another
    /// connection within its bounds.
    func mayResend(_ route: PushTable.Route, avoid: Int32) -> Bool {
        let hasOther = connections.contains { $0.serial != avoid && $0.route == route && !$0.machine.isDraining }
        let isUsable = connections.contains { $0.serial == avoid && $0.machine.isReady }
        if hasOther || !isUsable { return true }
        wantsAnother = true
        return false
    }

    // MARK: Growth

    /// Opens a connection if the pool wants one and the pacer allows it.
    ///
    /// - Returns: when the pacer allows the connection that is wanted.
    func maintain() -> UInt64? {
        let now = now
        sweepClosed()
        noteUsable()
        if credential.identity.isAbsent { return nil }
        let wanted: PushTable.Route
        if policy.wantsConnection(summary(.main), nowNanos: now) {
            wanted = .main
        } else {
            wantsAnother = false
            guard context.limits.suspectConnectionsMax > 0, isSuspectRouteUsed,
                suspectPolicy.wantsConnection(summary(.suspect), nowNanos: now)
            else { return nil }
            wanted = .suspect
        }
        let pushesWait = pushes.queuedCount > 0
        guard pacer.mayConnect(pushesWait: pushesWait, nowNanos: now) else {
            return pacer.notBeforeNanos(pushesWait: pushesWait)
        }
        connect(wanted, nowNanos: now)
        return nil
    }

    private var isSuspectRouteUsed: Bool {
        pushes.table.suspectCount > 0 || connections.contains { $0.route == .suspect && $0.isReplacing }
    }

    private func summary(_ route: PushTable.Route) -> PoolPolicy.Summary {
        var summary = PoolPolicy.Summary()
        let bytes = pushes.table.anyWaiting(route).map { pushes.table.payloadBytes($0) } ?? 1
        for connection in connections where connection.route == route {
            switch connection.machine.phase {
            case .connecting, .waitingSettings:
                summary.live += 1
                summary.opening += 1
            case .ready:
                summary.live += 1
                // Without window for the next push a connection has no room, however many streams it allows. APNs
                // leaves the window at 65 535 bytes, about a hundred pushes.
                if !connection.isFrozen, connection.canCarry(bytes) { summary.room += connection.machine.room }
                // Nothing is accepted yet, so its capacity is unknown.
                if !connection.isProven, !connection.isSuspicious { summary.opening += 1 }
                if connection.isReplacing { summary.replacing += 1 }
            case .draining, .closed: break
            }
        }
        let suspects = pushes.table.suspectCount
        summary.waiting = route == .main ? pushes.table.waitingCount - suspects : suspects
        summary.wantsAnother = wantsAnother
        // When almost nothing ends, the quotient is unbounded.
        let perSecond = pushes.perSecond
        if perSecond > 0 { summary.waitNanos = UInt64(min(Double(summary.waiting) / perSecond, 3600) * 1e9) }
        // More connections do not help while the limiter is the bound.
        summary.hasLeave = pushes.table.inFlightCount < pushes.limiter.limit
        return summary
    }

    /// Connections that carry pushes or soon will.
    private func live(_ route: PushTable.Route) -> Int {
        connections.count { $0.route == route && ($0.machine.isReady || $0.machine.isOpening) }
    }

    private func connect(_ route: PushTable.Route, nowNanos: UInt64) {
        wantsAnother = false
        let isRefill = (route == .main ? policy : suspectPolicy).isRefill(live: live(route), nowNanos: nowNanos)
        pacer.began(isRefill: isRefill, nowNanos: nowNanos, random: &context.random)
        context.metrics.reconnects.add()
        var rules = rules(for: credential.identity)
        rules.ageMaxNanos -= context.random.next(in: 0...rules.ageMaxNanos / 10)
        if route == .suspect { rules.streamsMax = min(rules.streamsMax, context.limits.suspectStreamsMax) }
        lastSerial &+= 1
        guard let client = context.client else { return }
        do {
            let connection = try APNsConnection(
                client: client.takeUnretainedValue(), loop: context.loop, serial: lastSerial & .max, route: route,
                endpoint: context.endpoint, identity: credential.identity, rules: rules)
            connections.append(connection)
        } catch {
            context.log.error("no HTTP/2 session for APNs", ["fault": .string(error.description)])
            pacer.failed(nowNanos: nowNanos, random: &context.random)
        }
    }

    private func rules(for identity: ClientIdentity) -> ConnectionMachine.Rules {
        let limits = context.limits
        return ConnectionMachine.Rules(
            connectTimeoutNanos: limits.connectTimeoutNanos, settingsTimeoutNanos: limits.settingsTimeoutNanos,
            pingAfterNanos: limits.pingAfterNanos, pingTimeoutNanos: limits.pingTimeoutNanos,
            idlePingNanos: limits.idlePingNanos, ageMaxNanos: limits.ageMaxNanos,
            streamsMax: limits.streamsPerConnectionMax, startsWithOneStream: identity.tokens != nil)
    }

    /// The order in which a lookup's addresses are tried.
    func orderAddresses(_ found: [String]) -> [Int] {
        addresses.order(
            found, inUse: connections.filter { $0.machine.isReady }.compactMap(\.remoteAddress), nowNanos: now,
            random: &context.random)
    }

    // MARK: Events of a connection

    func ready(_ connection: APNsConnection) {
        context.log.info(
            "connected to APNs",
            [
                "host": .string(context.endpoint.host), "address": .string(connection.remoteAddress ?? "?"),
                "streams": .int(connection.machine.peerLimit),
            ])
        noteUsable()
    }

    /// The connection's first push was accepted: the endpoint works, and this connection is warm.
    ///
    /// Make before break: only now does the oldest connection that waits for a successor close.
    func proved(_ connection: APNsConnection) {
        connection.isProven = true
        usability.stall = nil
        pacer.proved()
        if let address = connection.remoteAddress { addresses.succeeded(address) }
        credential.accepted(connection.identity)
        let old = connections.first {
            $0.isReplacing && $0.route == connection.route && $0.machine.isReady && $0 !== connection
        }
        if let old { retire(old, old.replaceCause ?? .age) }
    }

    /// GOAWAY: no new streams here. The ends of streams above its last id follow as separate events.
    func goes(_ connection: APNsConnection, _ goAway: GoAway) {
        let reason = AnswerBody(goAway.debug).reason
        context.metrics.goaway(reason)
        usability.farewell = .goAway(code: goAway.code.description, reason: reason)
        context.log.warning(
            "APNs sent GOAWAY",
            [
                "code": .string(goAway.code.description), "reason": .string(reason.text),
                "last_stream": .int(Int(goAway.lastStreamID)), "in_flight": .int(connection.machine.inFlight),
            ])
        // Certificate and environment faults arrive only here, as {"reason": …} with last stream 0.
        if reason.isKnown, AnswerTable.rules.contains(where: { $0.reason == reason.text && $0.credential == .pause }) {
            refuse(reason, connection.identity)
        }
        if goAway.code != .noError {
            pushes.limiter.cut(.goaway, nowNanos: now)
        } else if connection.isProven, connection.machine.isReady {
            noteServed(connection)
            let live = live(connection.route)
            if connection.route == .main {
                policy.lost(live: live, nowNanos: now)
            } else {
                suspectPolicy.lost(live: live, nowNanos: now)
            }
        }
        retire(connection, .goaway)
    }

    func pingAnswered(_ nanos: UInt64) { context.metrics.pingRoundTrip.observe(nanos) }

    /// The connection ended or broke: its streams are reported, and the pump opens a successor. Within a call of a link
    /// or session.
    func broke(_ connection: APNsConnection, fault: String) {
        guard connections.contains(where: { $0 === connection }) else { return }
        let isWanted = !connection.machine.isDraining
        // Some servers close without GOAWAY when nothing is in flight.
        if connection.isProven, connection.machine.isReady, connection.machine.inFlight == 0 { noteServed(connection) }
        for address in connection.failedAddresses { addresses.failed(address, nowNanos: now) }
        if !connection.isProven {
            noteFailure(connection)
            if let address = connection.remoteAddress { addresses.failed(address, nowNanos: now) }
        }
        if connection.machine.isOpening {
            warnOfFailedConnect(fault)
        } else if isWanted || connection.machine.inFlight > 0 {
            context.log.warning(
                "lost a connection to APNs",
                [
                    "host": .string(context.endpoint.host), "fault": .string(fault),
                    "in_flight": .int(connection.machine.inFlight),
                ])
        }
        connection.shut()
        connections.removeAll { $0 === connection }
        if connections.allSatisfy({ !$0.machine.isReady }) {
            if let stall = usability.stall { return noteUnusable(stall.description) }
            noteUnusable(isWanted ? fault : usability.farewell?.description ?? fault)
        }
    }

    /// Connects are tried about every second while APNs is away.
    private func warnOfFailedConnect(_ fault: String) {
        guard let suppressed = connectLines.admit(context.endpoint.port, nowNanos: now) else { return }
        context.log.warning(
            "cannot connect to APNs",
            [
                "host": .string(context.endpoint.host), "fault": .string(fault),
                "suppressed": .int(Int(clamping: suppressed)),
            ])
    }

    /// The peer ends a connection normally. If it was useful, its successor costs nothing.
    private func noteServed(_ connection: APNsConnection) {
        if connection.health.answers >= Self.answersOfAServed { pacer.served() }
    }

    /// With fewer answers, the endpoint might accept connections, take a few pushes and hang up. At this rate of
    /// connects, handshakes cost less than pushes.
    private static var answersOfAServed: UInt64 { 100 }

    // MARK: Ends

    /// Stops new streams on a connection. It closes with the end of its last stream.
    func retire(_ connection: APNsConnection, _ cause: ConnectionMachine.DrainCause) {
        switch cause {
        case .goaway, .credential, .suspicious: if !connection.isProven { noteFailure(connection) }
        case .age, .idle: break
        }
        _ = connection.machine.drain(cause, nowNanos: now)
    }

    /// APNs refused a credential. If the previous one is in use again, the connections of the refused one end.
    func refuse(_ reason: APNsReason, _ refused: ClientIdentity) {
        guard credential.refused(refused, reason) else { return }
        for connection in connections {
            if connection.identity === refused {
                retire(connection, .credential)
            } else if connection.replaceCause == .credential {
                connection.replaceCause = nil
            }
        }
    }

    /// Another credential is in use: the connections of others get successors.
    func replaceOthers() {
        for connection in connections where connection.identity !== credential.identity && connection.machine.isReady {
            connection.replaceCause = .credential
        }
    }

    /// A new provider token was signed: the connections that used the refused one or an older one end.
    func retireExpired(_ tokens: TokenSource, version: Int) {
        for connection in connections
        where connection.tokens === tokens && connection.token.map({ $0.token.version <= version }) == true {
            retire(connection, .credential)
        }
    }

    /// APNs says in an answer why it wants no more pushes on a connection or with a credential.
    func noteFarewell(status: Int, _ reason: APNsReason) {
        usability.farewell = .answer(status: status, reason: reason)
    }

    /// Closes all connections at once.
    func close() {
        for connection in connections { connection.shut() }
        connections.removeAll()
    }

    /// Releases closed connections; only here, where no call of a connection is on the stack.
    private func sweepClosed() {
        guard connections.contains(where: { $0.machine.phase == .closed }) else { return }
        for connection in connections where connection.machine.phase == .closed { connection.shut() }
        connections.removeAll { $0.machine.phase == .closed }
    }

    /// An endpoint that accepts connections but no pushes counts as closed: the next connect backs off.
    private func noteFailure(_ connection: APNsConnection) {
        guard !connection.hasFailed else { return }
        connection.hasFailed = true
        context.metrics.connectFailures.add()
        pacer.failed(nowNanos: now, random: &context.random)
    }

    // MARK: Use

    private func noteUsable() {
        let isUsable = connections.contains { $0.route == .main && isUseful($0) }
        guard isUsable != usability.isUsable else { return }
        if isUsable {
            usability.becameUsable()
            context.changed(.usable)
        } else {
            noteUnusable(
                usability.farewell?.description ?? usability.stall?.description ?? "all connections are draining")
        }
    }

    /// After a stall only an accepted push shows that a connection is of use.
    private func isUseful(_ connection: APNsConnection) -> Bool {
        guard connection.machine.isReady, connection.machine.peerLimit > 0 else { return false }
        return connection.isProven || (usability.stall == nil && !connection.isSuspicious)
    }

    private func noteUnusable(_ cause: String) {
        usability.becameUnusable(cause)
        context.changed(.unusable(cause: cause))
    }

    // MARK: Time

    func tick() {
        let now = now
        for connection in connections {
            switch connection.machine.tick(nowNanos: now) {
            case .nothing: break
            case .ping: connection.ping()
            case .replace: connection.replaceCause = .age
            case .close(let cause):
                if cause == .pingTimeout { context.metrics.deadConnections.add() }
                broke(connection, fault: cause.rawValue)
            }
        }
        for connection in connections where connection.machine.isReady { checkHealth(of: connection) }
        // Nothing is left that could be stuck.
        if pushes.table.count == 0 { usability.stall = nil }
        retireIdle(.main, keep: context.limits.connectionsMin)
        retireIdle(.suspect, keep: 0)
    }

    private func retireIdle(_ route: PushTable.Route, keep: Int) {
        let now = now
        let ready = connections.filter { $0.route == route && $0.machine.isReady && !$0.isReplacing }
        let spare = ready.count - keep
        guard spare > 0 else { return }
        let idle = ready.filter { $0.machine.idleNanos(nowNanos: now) >= context.limits.idleMaxNanos }
        for connection in idle.prefix(spare) { retire(connection, .idle) }
    }

    // MARK: Connections that live and are of no use

    /// Looks at one ready connection: a suspected one gets no more pushes as soon as another one takes them.
    func checkHealth(of connection: APNsConnection) {
        if let answers = connection.frozenAfter, connection.health.answers > answers {
            // The connection was only slow to answer and may stay.
            connection.frozenAfter = nil
            connection.replaceCause = nil
        }
        let others = connections.filter {
            $0.route == connection.route && $0 !== connection && $0.machine.isReady && $0.isProven && !$0.isReplacing
        }
        if connection.isSuspicious { return leave(connection, hasOther: !others.isEmpty) }
        guard let suspicion = suspicion(of: connection, others: others) else { return }
        context.metrics.suspicion(suspicion)
        context.log.warning(
            "replacing an unhealthy connection to APNs",
            [
                "address": .string(connection.remoteAddress ?? "?"), "how": .string(suspicion.rawValue),
                "in_flight": .int(connection.machine.inFlight),
            ])
        connection.replaceCause = .suspicious
        if suspicion == .frozen { connection.frozenAfter = connection.health.answers }
        if connection.isProven {
            pushes.limiter.cut(.slow, nowNanos: now)
        } else if connection.route == .main {
            usability.stall = suspicion
            if !connections.contains(where: { $0.machine.isReady && $0.isProven }) {
                noteUnusable(suspicion.description)
            }
        }
        leave(connection, hasOther: !others.isEmpty)
    }

    /// Gives up a suspected connection: at once if another one takes its pushes, or if it never carried one. Any push
    /// in flight on it may still be answered.
    private func leave(_ connection: APNsConnection, hasOther: Bool) {
        let isEmpty = !connection.isProven && connection.machine.inFlight == 0
        if hasOther || isEmpty { retire(connection, .suspicious) }
    }

    private func suspicion(of connection: APNsConnection, others: [APNsConnection]) -> ConnectionHealth.Suspicion? {
        let waiting = pushes.table.anyWaiting(connection.route)
        // A first push that is stuck harms nobody while no other push waits: one device must not have connections replaced.
        if !connection.machine.isWarm, waiting == nil { return nil }
        let trips = others.filter { $0.health.answers >= 32 }.map(\.health.tripNanos).sorted()
        return connection.health.suspicion(
            inFlight: connection.machine.inFlight,
            blocked: waiting.flatMap { connection.block(of: pushes.table.payloadBytes($0)) },
            peersTripNanos: trips.isEmpty ? nil : trips[trips.count / 2], stallNanos: context.limits.stallNanos,
            nowNanos: now)
    }

    /// Updates the gauges; on ticks, never per push.
    func showState() {
        let (counts, metrics) = (counts, context.metrics)
        metrics.connectionsReady.set(counts.ready)
        metrics.connectionsOpening.set(counts.opening)
        metrics.connectionsDraining.set(counts.draining)
        metrics.streamsLimit.set(connections.reduce(0) { $0 + $1.machine.limit })
    }
}
