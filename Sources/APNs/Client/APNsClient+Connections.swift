import EventLoop
import HTTP2
import Telemetry

// The pool: when connections are opened, watched, drained and given up.
extension APNsClient {
    /// Opens a connection where the pool wants one and the pacer allows it.
    func maintainPool() {
        let now = loop.nowNanos
        sweepClosed()
        noteUsable()
        guard pool.wantsConnection(summary, nowNanos: now) else { return wantsAnother = false }
        guard pacer.mayConnect(nowNanos: now) else { return wakeForConnect(atNanos: pacer.notBeforeNanos) }
        connect(nowNanos: now)
    }

    private var summary: PoolPolicy.Summary {
        var summary = PoolPolicy.Summary()
        let bytes = table.firstWaiting.map { table.payloadBytes($0) } ?? 1
        for connection in connections {
            switch connection.machine.phase {
            case .connecting, .waitingSettings:
                summary.live += 1
                summary.opening += 1
            case .ready:
                summary.live += 1
                // Without window for the next push a connection has no room, however many streams it allows: APNs leaves
                // the window at 65 535 bytes, some hundred pushes.
                if connection.canCarry(bytes) { summary.room += connection.machine.room }
                // Nothing accepted yet: what it will carry is not known.
                if !connection.isProven { summary.opening += 1 }
                if connection.isReplacing { summary.replacing += 1 }
            case .draining, .closed: break
            }
        }
        summary.waiting = table.waitingCount
        summary.wantsAnother = wantsAnother
        summary.inFlight = table.inFlightCount
        return summary
    }

    private func connect(nowNanos: UInt64) {
        wantsAnother = false
        pacer.began(nowNanos: nowNanos, random: &random)
        metrics.reconnects.add()
        var rules = rules
        rules.ageMaxNanos -= random.next(in: 0...rules.ageMaxNanos / 10)
        nextSerial &+= 1
        do {
            let connection = try APNsConnection(
                client: self, loop: loop, serial: nextSerial & .max, endpoint: endpoint, tls: tls, rules: rules)
            connections.append(connection)
        } catch {
            log.error("no HTTP/2 session for APNs", ["fault": .string(error.description)])
            pacer.failed(nowNanos: nowNanos, random: &random)
        }
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

    /// A push was accepted here for the first time: the endpoint is in order, and this connection is warm.
    ///
    /// Make before break: only now goes the oldest of those that wait for a successor.
    func connectionProved(_ connection: APNsConnection) {
        connection.isProven = true
        pacer.proved()
        if let old = connections.first(where: { $0.isReplacing && $0.machine.isReady && $0 !== connection }) {
            retire(old, .age)
        }
    }

    /// GOAWAY: no new streams here; the ends of those above its last id follow as events of their own.
    func connectionGoes(_ connection: APNsConnection, _ goAway: GoAway) {
        let reason = AnswerBody(goAway.debug).reason
        metrics.goaway(reason)
        log.warning(
            "APNs sent GOAWAY",
            [
                "code": .string(goAway.code.description), "reason": .string(reason.text),
                "last_stream": .int(Int(goAway.lastStreamID)), "in_flight": .int(connection.machine.inFlight),
            ])
        // Certificate and environment faults arrive only here, as {"reason": …} with last stream 0.
        if reason.isKnown, AnswerTable.rules.contains(where: { $0.reason == reason.text && $0.credential == .pause }) {
            pause(reason)
        }
        retire(connection, .goaway)
    }

    func pingAnswered(_ nanos: UInt64) { metrics.pingRoundTrip.observe(nanos) }

    /// The connection ended or broke: its streams are told, a successor is opened by the pump.
    func connectionBroke(_ connection: APNsConnection, fault: String) {
        guard connections.contains(where: { $0 === connection }) else { return }
        enter()
        defer { leave() }
        let isWanted = !connection.machine.isDraining
        if !connection.isProven { noteFailure(connection) }
        if isWanted || connection.machine.inFlight > 0 {
            log.warning(
                "lost a connection to APNs",
                [
                    "host": .string(endpoint.host), "fault": .string(fault),
                    "in_flight": .int(connection.machine.inFlight),
                ])
        }
        connection.shut()
        connections.removeAll { $0 === connection }
        if connections.allSatisfy({ !$0.machine.isReady }) { noteUnusable(fault) }
    }

    /// No new streams on a connection; it closes when its last one ends.
    func retire(_ connection: APNsConnection, _ cause: ConnectionMachine.DrainCause) {
        if cause == .goaway || cause == .credential, !connection.isProven { noteFailure(connection) }
        _ = connection.machine.drain(cause, nowNanos: loop.nowNanos)
    }

    /// Gives up what drained to its end; only here, where no call of a connection is on the stack.
    private func sweepClosed() {
        guard connections.contains(where: { $0.machine.phase == .closed }) else { return }
        for connection in connections where connection.machine.phase == .closed { connection.shut() }
        connections.removeAll { $0.machine.phase == .closed }
    }

    /// An endpoint that lets us in and accepts nothing is as good as closed: the next connect backs off.
    private func noteFailure(_ connection: APNsConnection) {
        guard !connection.hasFailed else { return }
        connection.hasFailed = true
        metrics.connectFailures.add()
        pacer.failed(nowNanos: loop.nowNanos, random: &random)
    }

    private func noteUsable() {
        let isUsable = connections.contains { $0.machine.isReady }
        guard isUsable != wasUsable else { return }
        if isUsable {
            wasUsable = true
            delegate?.apns(self, stateChanged: .usable)
        } else {
            noteUnusable("all connections are draining")
        }
    }

    private func noteUnusable(_ cause: String) {
        wasUsable = false
        delegate?.apns(self, stateChanged: .unusable(cause: cause))
    }

    // MARK: Time

    func tickConnections() {
        let now = loop.nowNanos
        for connection in connections {
            switch connection.machine.tick(nowNanos: now) {
            case .nothing: break
            case .ping: connection.ping()
            case .replace: connection.isReplacing = true
            case .close(let cause):
                if cause == .pingTimeout { metrics.deadConnections.add() }
                connectionBroke(connection, fault: cause.rawValue)
            }
        }
        let ready = connections.filter { $0.machine.isReady && !$0.isReplacing }
        let spare = ready.count - limits.connectionsMin
        guard spare > 0 else { return }
        let idle = ready.filter { $0.machine.idleNanos(nowNanos: now) >= limits.idleMaxNanos }
        for connection in idle.prefix(spare) { retire(connection, .idle) }
    }
}
