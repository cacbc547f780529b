// SPDX-License-Identifier: Apache-2.0
import EventLoop
import HTTP2
import Telemetry

// The pool: when connections are opened, checked, drained and closed.
extension APNsClient {
    /// Opens a connection if the pool wants one and the pacer allows it.
    func maintainPool() {
        let now = loop.nowNanos
        sweepClosed()
        noteUsable()
        if lacksCredential { return }
        let wanted: PushTable.Route
        if pool.wantsConnection(summary(.main), nowNanos: now) {
            wanted = .main
        } else {
            wantsAnother = false
            guard limits.suspectConnectionsMax > 0, isSuspectRouteUsed,
                suspectPool.wantsConnection(summary(.suspect), nowNanos: now)
            else { return }
            wanted = .suspect
        }
        let pushesWait = queued > 0
        guard pacer.mayConnect(pushesWait: pushesWait, nowNanos: now) else {
            return wakeForConnect(atNanos: pacer.notBeforeNanos(pushesWait: pushesWait))
        }
        connect(wanted, nowNanos: now)
    }

    private var isSuspectRouteUsed: Bool {
        table.suspectCount > 0 || connections.contains { $0.route == .suspect && $0.isReplacing }
    }

    private func summary(_ route: PushTable.Route) -> PoolPolicy.Summary {
        var summary = PoolPolicy.Summary()
        let bytes = table.anyWaiting(route).map { table.payloadBytes($0) } ?? 1
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
        summary.waiting = route == .main ? table.waitingCount - table.suspectCount : table.suspectCount
        summary.wantsAnother = wantsAnother
        // When almost nothing ends, the quotient is unbounded.
        if perSecond > 0 { summary.waitNanos = UInt64(min(Double(summary.waiting) / perSecond, 3600) * 1e9) }
        // More connections do not help while the limiter is the bound.
        summary.hasLeave = table.inFlightCount < limiter.limit
        return summary
    }

    /// Connections that carry pushes or soon will.
    private func live(_ route: PushTable.Route) -> Int {
        connections.count { $0.route == route && ($0.machine.isReady || $0.machine.isOpening) }
    }

    private func connect(_ route: PushTable.Route, nowNanos: UInt64) {
        wantsAnother = false
        let isRefill = (route == .main ? pool : suspectPool).isRefill(live: live(route), nowNanos: nowNanos)
        pacer.began(isRefill: isRefill, nowNanos: nowNanos, random: &random)
        metrics.reconnects.add()
        var rules = rules(for: identity)
        rules.ageMaxNanos -= random.next(in: 0...rules.ageMaxNanos / 10)
        if route == .suspect { rules.streamsMax = min(rules.streamsMax, limits.suspectStreamsMax) }
        nextSerial &+= 1
        do {
            let connection = try APNsConnection(
                client: self, loop: loop, serial: nextSerial & .max, route: route, endpoint: endpoint,
                identity: identity,
                rules: rules)
            connections.append(connection)
        } catch {
            log.error("no HTTP/2 session for APNs", ["fault": .string(error.description)])
            pacer.failed(nowNanos: nowNanos, random: &random)
        }
    }

    private func rules(for identity: ClientIdentity) -> ConnectionMachine.Rules {
        ConnectionMachine.Rules(
            connectTimeoutNanos: limits.connectTimeoutNanos, settingsTimeoutNanos: limits.settingsTimeoutNanos,
            pingAfterNanos: limits.pingAfterNanos, pingTimeoutNanos: limits.pingTimeoutNanos,
            idlePingNanos: limits.idlePingNanos, ageMaxNanos: limits.ageMaxNanos,
            streamsMax: limits.streamsPerConnectionMax, startsWithOneStream: identity.tokens != nil)
    }

    /// The order in which a lookup's addresses are tried.
    func orderAddresses(_ found: [String]) -> [Int] {
        addresses.order(
            found, inUse: connections.filter { $0.machine.isReady }.compactMap(\.remoteAddress),
            nowNanos: loop.nowNanos,
            random: &random)
    }

    // MARK: Events of a connection

    func connectionReady(_ connection: APNsConnection) {
        log.info(
            "connected to APNs",
            [
                "host": .string(endpoint.host), "address": .string(connection.remoteAddress ?? "?"),
                "streams": .int(connection.machine.peerLimit),
            ])
        noteUsable()
    }

    /// The connection's first push was accepted: the endpoint works, and this connection is warm.
    ///
    /// Make before break: only now does the oldest connection that waits for a successor close.
    func connectionProved(_ connection: APNsConnection) {
        connection.isProven = true
        stall = nil
        pacer.proved()
        if let address = connection.remoteAddress { addresses.succeeded(address) }
        if connection.identity === identity, previousIdentity != nil {
            previousIdentity = nil
            log.info("APNs accepts the new credential", ["host": .string(endpoint.host)])
        }
        let old = connections.first {
            $0.isReplacing && $0.route == connection.route && $0.machine.isReady && $0 !== connection
        }
        if let old { retire(old, old.replaceCause ?? .age) }
    }

    /// GOAWAY: no new streams here. The ends of streams above its last id follow as separate events.
    func connectionGoes(_ connection: APNsConnection, _ goAway: GoAway) {
        let reason = AnswerBody(goAway.debug).reason
        metrics.goaway(reason)
        farewell = .goAway(code: goAway.code.description, reason: reason)
        log.warning(
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
            limiter.cut(.goaway, nowNanos: loop.nowNanos)
        } else if connection.isProven, connection.machine.isReady {
            noteServed(connection)
            let live = live(connection.route)
            if connection.route == .main {
                pool.lost(live: live, nowNanos: loop.nowNanos)
            } else {
                suspectPool.lost(live: live, nowNanos: loop.nowNanos)
            }
        }
        retire(connection, .goaway)
    }

    func pingAnswered(_ nanos: UInt64) { metrics.pingRoundTrip.observe(nanos) }

    /// The connection ended or broke: its streams are reported, and the pump opens a successor.
    func connectionBroke(_ connection: APNsConnection, fault: String) {
        guard connections.contains(where: { $0 === connection }) else { return }
        enter()
        defer { leave() }
        let isWanted = !connection.machine.isDraining
        // Some servers close without GOAWAY when nothing is in flight.
        if connection.isProven, connection.machine.isReady, connection.machine.inFlight == 0 { noteServed(connection) }
        for address in connection.failedAddresses { addresses.failed(address, nowNanos: loop.nowNanos) }
        if !connection.isProven {
            noteFailure(connection)
            if let address = connection.remoteAddress { addresses.failed(address, nowNanos: loop.nowNanos) }
        }
        if connection.machine.isOpening {
            warnOfFailedConnect(fault)
        } else if isWanted || connection.machine.inFlight > 0 {
            log.warning(
                "lost a connection to APNs",
                [
                    "host": .string(endpoint.host), "fault": .string(fault),
                    "in_flight": .int(connection.machine.inFlight),
                ])
        }
        connection.shut()
        connections.removeAll { $0 === connection }
        if connections.allSatisfy({ !$0.machine.isReady }) {
            if let stall { return noteUnusable(stall.description) }
            noteUnusable(isWanted ? fault : farewell?.description ?? fault)
        }
    }

    /// Connects are tried about every second while APNs is away.
    private func warnOfFailedConnect(_ fault: String) {
        guard let suppressed = connectLines.admit(endpoint.port, nowNanos: loop.nowNanos) else { return }
        log.warning(
            "cannot connect to APNs",
            [
                "host": .string(endpoint.host), "fault": .string(fault),
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

    /// Stops new streams on a connection. It closes with the end of its last stream.
    func retire(_ connection: APNsConnection, _ cause: ConnectionMachine.DrainCause) {
        switch cause {
        case .goaway, .credential, .suspicious: if !connection.isProven { noteFailure(connection) }
        case .age, .idle: break
        }
        _ = connection.machine.drain(cause, nowNanos: loop.nowNanos)
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
        metrics.connectFailures.add()
        pacer.failed(nowNanos: loop.nowNanos, random: &random)
    }

    private func noteUsable() {
        let isUsable = connections.contains { $0.route == .main && isUseful($0) }
        guard isUsable != wasUsable else { return }
        if isUsable {
            wasUsable = true
            farewell = nil
            unusableBecause = nil
            delegate?.apns(self, stateChanged: .usable)
        } else {
            noteUnusable(farewell?.description ?? stall?.description ?? "all connections are draining")
        }
    }

    /// After a stall only an accepted push shows that a connection is of use.
    private func isUseful(_ connection: APNsConnection) -> Bool {
        guard connection.machine.isReady, connection.machine.peerLimit > 0 else { return false }
        return connection.isProven || (stall == nil && !connection.isSuspicious)
    }

    func noteUnusable(_ cause: String) {
        wasUsable = false
        unusableBecause = cause
        delegate?.apns(self, stateChanged: .unusable(cause: cause))
    }

    // MARK: Time

    /// Updates the recent number of pushes that end per second.
    func measurePace() {
        let now = loop.nowNanos
        let elapsed = Double(now &- paceNanos) * 1e-9
        guard elapsed >= 0.1 else { return }
        let pace = Double(endedCount) / elapsed
        perSecond = perSecond == 0 ? pace : perSecond * 0.5 + pace * 0.5
        endedCount = 0
        paceNanos = now
    }

    func tickConnections() {
        let now = loop.nowNanos
        for connection in connections {
            switch connection.machine.tick(nowNanos: now) {
            case .nothing: break
            case .ping: connection.ping()
            case .replace: connection.replaceCause = .age
            case .close(let cause):
                if cause == .pingTimeout { metrics.deadConnections.add() }
                connectionBroke(connection, fault: cause.rawValue)
            }
        }
        for connection in connections where connection.machine.isReady { look(at: connection) }
        // Nothing is left that could be stuck.
        if table.count == 0 { stall = nil }
        retireIdle(.main, keep: limits.connectionsMin)
        retireIdle(.suspect, keep: 0)
    }

    private func retireIdle(_ route: PushTable.Route, keep: Int) {
        let now = loop.nowNanos
        let ready = connections.filter { $0.route == route && $0.machine.isReady && !$0.isReplacing }
        let spare = ready.count - keep
        guard spare > 0 else { return }
        let idle = ready.filter { $0.machine.idleNanos(nowNanos: now) >= limits.idleMaxNanos }
        for connection in idle.prefix(spare) { retire(connection, .idle) }
    }
}
