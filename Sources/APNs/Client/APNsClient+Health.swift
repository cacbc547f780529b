// SPDX-License-Identifier: Apache-2.0
import EventLoop
import HTTP2
import Telemetry

// Connections that live and are of no use: found, replaced, and shown to the operator.
extension APNsClient {
    /// Looks at one ready connection: a suspected one gets no more pushes as soon as another one takes them.
    func look(at connection: APNsConnection) {
        if let answers = connection.frozenAfter, connection.health.answers > answers {
            // It was only slow to answer; it may stay.
            connection.frozenAfter = nil
            connection.replaceCause = nil
        }
        let others = connections.filter {
            $0.route == connection.route && $0 !== connection && $0.machine.isReady && $0.isProven && !$0.isReplacing
        }
        if connection.isSuspicious { return leave(connection, hasOther: !others.isEmpty) }
        guard let suspicion = suspicion(of: connection, others: others) else { return }
        metrics.suspicion(suspicion)
        log.warning(
            "replacing an unhealthy connection to APNs",
            [
                "address": .string(connection.remoteAddress ?? "?"), "how": .string(suspicion.rawValue),
                "in_flight": .int(connection.machine.inFlight),
            ])
        connection.replaceCause = .suspicious
        if suspicion == .frozen { connection.frozenAfter = connection.health.answers }
        if connection.isProven {
            limiter.cut(.slow, nowNanos: loop.nowNanos)
        } else if connection.route == .main {
            stall = suspicion
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
        let waiting = table.anyWaiting(connection.route)
        // A first push that is stuck harms nobody while no other push waits: one device must not have connections replaced.
        if !connection.machine.isWarm, waiting == nil { return nil }
        let trips = others.filter { $0.health.answers >= 32 }.map(\.health.tripNanos).sorted()
        return connection.health.look(
            inFlight: connection.machine.inFlight,
            blocked: waiting.flatMap { connection.block(of: table.payloadBytes($0)) },
            peersTripNanos: trips.isEmpty ? nil : trips[trips.count / 2], stallNanos: limits.stallNanos,
            nowNanos: loop.nowNanos)
    }

    // MARK: Pushes that wait too long

    /// Ends expired pushes without a stream, once a second.
    func sweepExpired() {
        let wallMs = loop.unixMs
        guard wallMs - lastSweepMs >= 1000 || wallMs < lastSweepMs else { return }
        lastSweepMs = wallMs
        // An owner that receives an outcome may take back other pushes and send new ones, which may reuse the slots.
        for slot in table.expired(nowMs: wallMs)
        where table.holds(slot) && !table.isInFlight(slot) && table.expiresAtMs(slot) <= wallMs {
            finish(slot, expiredOutcome(slot))
        }
    }

    /// Abandons streams without an answer in time. Only these streams are reset; the connection continues.
    func timeOutAnswers() {
        let now = loop.nowNanos
        while let slot = table.oldestInFlight, now &- table[slot].submittedNanos >= limits.answerNanos {
            guard let connection = connections.first(where: { $0.serial == table[slot].connection }) else {
                // Its connection has disappeared without an event. This cannot happen, and must not block if it does.
                finish(slot, lost(slot))
                continue
            }
            table[slot].isTimedOut = true
            limiter.cut(.slow, nowNanos: now)
            let stream = HTTP2Stream(id: table[slot].stream, tag: UInt64(UInt32(bitPattern: slot)))
            connection.reset(stream.id)
            // Already reported, unless the session has lost the stream.
            streamEnded(stream, .closed(.cancel), on: connection)
        }
    }
}

extension ConnectionHealth.Suspicion {
    /// Why no connection is of use, for an operator.
    var description: String {
        switch self {
        case .frozen: "APNs answers nothing on a new connection"
        case .window: "APNs gives back no window"
        case .streams: "APNs allows no streams"
        case .slow: "APNs is slow"
        }
    }
}
