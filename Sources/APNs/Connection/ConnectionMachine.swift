// SPDX-License-Identifier: Apache-2.0
/// The life of one connection to APNs, without sockets: events with an injected clock in, actions out.
///
/// connecting → waitingSettings → ready → draining → closed; every state may go straight to closed. Streams may begin
/// only in `ready`; `draining` lets open streams finish.
struct ConnectionMachine: ~Copyable {
    struct Rules: Equatable {
        var connectTimeoutNanos: UInt64
        var settingsTimeoutNanos: UInt64
        var pingAfterNanos: UInt64
        var pingTimeoutNanos: UInt64
        var idlePingNanos: UInt64
        var ageMaxNanos: UInt64
        var streamsMax: Int
        /// Token authentication: one stream until the first acceptance.
        var startsWithOneStream: Bool
    }

    enum Phase: Equatable {
        /// TCP and TLS are in progress. Goes to `waitingSettings` or `closed`.
        case connecting
        /// TLS is established, the peer's limits are still unknown. Goes to `ready`, `draining` or `closed`.
        case waitingSettings
        /// Goes to `draining` or `closed`.
        case ready
        /// Accepts no new streams. Goes to `closed` when the last one ended.
        case draining(DrainCause)
        /// The end.
        case closed
    }

    enum DrainCause: String, Equatable {
        case goaway, age, idle, credential, suspicious
    }

    enum CloseCause: String, Equatable {
        case connectTimeout, settingsTimeout, pingTimeout, drained
    }

    private(set) var phase: Phase = .connecting
    private(set) var inFlight = 0
    /// True after the first acceptance, or from the start with a certificate.
    private(set) var isWarm: Bool
    private(set) var peerLimit = 0
    private let rules: Rules
    private let bornNanos: UInt64
    private var phaseNanos: UInt64
    private var heardNanos: UInt64
    private var busyNanos: UInt64
    private var pingNanos: UInt64?
    private var agesOut = false

    init(rules: Rules, nowNanos: UInt64) {
        self.rules = rules
        isWarm = !rules.startsWithOneStream
        bornNanos = nowNanos
        phaseNanos = nowNanos
        heardNanos = nowNanos
        busyNanos = nowNanos
    }

    var isReady: Bool { phase == .ready }
    var isDraining: Bool { if case .draining = phase { true } else { false } }
    var isOpening: Bool { phase == .connecting || phase == .waitingSettings }

    /// Maximum streams of this connection now.
    var limit: Int {
        guard phase == .ready else { return 0 }
        let allowed = min(peerLimit, rules.streamsMax)
        // "APNs allows only one stream until a request with a valid token succeeded" (Apple, Establishing a
        // connection).
        return isWarm ? allowed : min(allowed, 1)
    }

    /// Streams that may begin now.
    var room: Int { max(limit - inFlight, 0) }

    /// TLS is established and h2 agreed.
    mutating func opened(nowNanos: UInt64) {
        guard phase == .connecting else { return }
        enter(.waitingSettings, nowNanos)
    }

    enum SettingsAction: Equatable { case nothing, becameReady, limitChanged }

    /// SETTINGS arrived. `maxStreams` is nil if the peer has never named a limit.
    mutating func settings(maxStreams: UInt32?, nowNanos: UInt64) -> SettingsAction {
        let old = peerLimit
        peerLimit = maxStreams.map { Int($0) } ?? rules.streamsMax
        switch phase {
        case .waitingSettings:
            enter(.ready, nowNanos)
            return .becameReady
        case .ready:
            return old == peerLimit ? .nothing : .limitChanged
        case .connecting, .draining, .closed:
            return .nothing
        }
    }

    /// A request was written. Only after checking `room`.
    mutating func submitted(nowNanos: UInt64) {
        if inFlight == 0, pingNanos == nil, nowNanos &- heardNanos > rules.pingAfterNanos {
            // An idle connection owes no bytes: its silence counts from the first request on.
            heardNanos = nowNanos
        }
        inFlight += 1
        busyNanos = nowNanos
    }

    enum EndAction: Equatable { case nothing, warmed, close }

    /// A stream ended in any way. `isProof`: APNs accepted the provider token.
    mutating func ended(isProof: Bool) -> EndAction {
        inFlight = max(inFlight - 1, 0)
        if case .draining = phase, inFlight == 0 {
            phase = .closed
            return .close
        }
        if isProof, !isWarm {
            isWarm = true
            return .warmed
        }
        return .nothing
    }

    /// No new streams from here on. Returns `.close` if none is open.
    mutating func drain(_ cause: DrainCause, nowNanos: UInt64) -> EndAction {
        switch phase {
        case .closed, .draining: return .nothing
        case .connecting, .waitingSettings, .ready:
            if inFlight == 0 {
                phase = .closed
                return .close
            }
            enter(.draining(cause), nowNanos)
            return .nothing
        }
    }

    mutating func heard(nowNanos: UInt64) { heardNanos = nowNanos }

    /// The answer to our PING. Returns the round trip.
    mutating func pingAcknowledged(nowNanos: UInt64) -> UInt64? {
        guard let sent = pingNanos else { return nil }
        pingNanos = nil
        return nowNanos &- sent
    }

    mutating func closed() { phase = .closed }

    enum TickAction: Equatable {
        case nothing, ping
        /// It is too old: open the successor, then drain this one.
        case replace
        case close(CloseCause)
    }

    /// Time passed.
    mutating func tick(nowNanos: UInt64) -> TickAction {
        switch phase {
        case .closed: return .nothing
        case .connecting:
            return nowNanos &- phaseNanos >= rules.connectTimeoutNanos ? .close(.connectTimeout) : .nothing
        case .waitingSettings:
            return nowNanos &- phaseNanos >= rules.settingsTimeoutNanos ? .close(.settingsTimeout) : .nothing
        case .ready, .draining:
            return tickOpen(nowNanos)
        }
    }

    /// How long nothing was submitted here.
    func idleNanos(nowNanos: UInt64) -> UInt64 { inFlight > 0 ? 0 : nowNanos &- busyNanos }

    private mutating func tickOpen(_ nowNanos: UInt64) -> TickAction {
        if let pingNanos {
            // Any bytes since the PING prove life as well as its answer.
            if heardNanos > pingNanos {
                if nowNanos &- pingNanos >= rules.pingTimeoutNanos { self.pingNanos = nil }
                return .nothing
            }
            return nowNanos &- pingNanos >= rules.pingTimeoutNanos ? .close(.pingTimeout) : .nothing
        }
        let silence = nowNanos &- heardNanos
        if silence >= (inFlight > 0 ? rules.pingAfterNanos : rules.idlePingNanos) {
            pingNanos = nowNanos
            return .ping
        }
        if phase == .ready, !agesOut, nowNanos &- bornNanos >= rules.ageMaxNanos {
            agesOut = true
            return .replace
        }
        return .nothing
    }

    private mutating func enter(_ next: Phase, _ nowNanos: UInt64) {
        phase = next
        phaseNanos = nowNanos
        heardNanos = nowNanos
    }
}
