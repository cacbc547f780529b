// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Telemetry

/// The credential of a client, and whether APNs takes it: the layer above `ClientContext`.
final class CredentialInUse {
    /// The credential for new connections.
    private(set) var identity: ClientIdentity
    /// The previous credential, until the present one was accepted.
    private(set) var previousIdentity: ClientIdentity?
    private(set) var gate: CredentialGate
    /// APNs' reason for refusing a new credential, so that the previous one stays in use; nil if the newest is used.
    private(set) var refusedReplacement: APNsReason?
    /// Our clock minus that of APNs in seconds; nil before an answer with a time.
    private(set) var clockAheadSeconds: Int64?
    private var pausedReason: APNsReason?
    private(set) var hasLoggedSkew = false
    /// Read once: a renewed credential must not wait for a disk on the loop.
    private let trust: TLSTrust
    private let context: ClientContext

    init(_ credential: APNsCredential?, _ context: ClientContext) throws(APNsFault) {
        self.context = context
        trust = try ClientIdentity.trust(of: context.endpoint)
        identity = try ClientIdentity(credential, for: context.endpoint, trust: trust)
        gate = CredentialGate(probeNanos: context.limits.credentialProbeNanos)
    }

    /// The reason why the credential is paused; nil if it is not.
    var pause: APNsReason? { gate.isPaused ? pausedReason : nil }
    /// Until there is a credential, it counts as one that may send everything.
    var hasToken: Bool { identity.tokens != nil || identity.isAbsent }

    /// Takes another credential for new connections. A paused one is tried again at once.
    func replace(with credential: APNsCredential) throws(APNsFault) {
        let fresh = try ClientIdentity(credential, for: context.endpoint, trust: trust)
        if previousIdentity == nil, !gate.isPaused, !identity.isAbsent { previousIdentity = identity }
        if gate.isPaused { previousIdentity = nil }
        identity = fresh
        refusedReplacement = nil
        gate.retryNow(nowNanos: context.loop.nowNanos)
    }

    /// A push was accepted on a connection of this identity.
    func accepted(_ used: ClientIdentity) {
        guard used === identity, previousIdentity != nil else { return }
        previousIdentity = nil
        context.log.info("APNs accepts the new credential", ["host": .string(context.endpoint.host)])
    }

    /// APNs refused a credential: returns to the previous one if there is one, else stops sending.
    ///
    /// - Returns: whether the previous one is in use again.
    func refused(_ refused: ClientIdentity, _ reason: APNsReason) -> Bool {
        // The answer concerns a credential that is no longer in use.
        guard refused === identity else { return false }
        guard let previous = previousIdentity else {
            pause(reason)
            return false
        }
        previousIdentity = nil
        identity = previous
        refusedReplacement = reason
        context.log.error(
            "APNs refuses the new credential; the old one stays in use",
            ["host": .string(context.endpoint.host), "reason": .string(reason.text)])
        return true
    }

    /// Stops sending with this credential until a probe is accepted.
    private func pause(_ reason: APNsReason) {
        guard gate.refused(nowNanos: context.loop.nowNanos) else { return }
        pausedReason = reason
        context.metrics.breakerOpenings[0].add()
        context.log.error(
            "APNs refuses the credential: check key, team, environment and clock; pushes wait",
            ["host": .string(context.endpoint.host), "reason": .string(reason.text)])
        context.changed(.credentialPaused(reason))
    }

    /// A push goes out while the gate is closed.
    func submitted() { gate.submitted() }

    func probeLost(nowNanos: UInt64) { gate.probeLost(nowNanos: nowNanos) }

    /// APNs judged a push itself.
    func proven() {
        guard gate.proven() else { return }
        pausedReason = nil
        context.log.info("APNs accepts the credential again")
        context.changed(.credentialResumed)
    }

    /// Reads the peer's clock from an answer: a provider token signed under a wrong clock is refused without a clear
    /// reason.
    func noteServerDate(_ dateSeconds: Int64) {
        let skew = context.loop.unixMs / 1000 - dateSeconds
        clockAheadSeconds = skew
        context.metrics.clockSkew.set(Double(skew))
        guard abs(skew) > 60, !hasLoggedSkew else { return }
        hasLoggedSkew = true
        context.log.error(
            "our clock differs from APNs': provider tokens will be refused",
            ["host": .string(context.endpoint.host), "ahead_s": .int(Int(clamping: skew))])
    }

    /// Updates the gauges; on ticks, never per push.
    func showState() {
        let metrics = context.metrics
        metrics.paused.set(gate.isPaused ? 1 : 0)
        metrics.breakerStates[0].set(gate.state == .open ? 0 : gate.state == .probing ? 1 : 2)
        if let tokens = identity.tokens {
            metrics.minted.add(UInt64(tokens.takeMinted()))
            metrics.tokenAge.set(tokens.ageSeconds(nowMs: context.loop.unixMs) ?? 0)
        }
    }
}
