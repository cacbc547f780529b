// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import Telemetry

/// An APNs client for commands: connects and sends single pushes, and waits for each. An actor on its own loop.
actor CommandAPNsClient {
    private nonisolated let loop: Loop
    private let delegate = CommandAPNsDelegate()
    private var client: APNsClient?

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init() throws(LoopFault) {
        loop = try Loop(name: "apns")
        loop.start()
    }

    enum Connecting: Sendable {
        case ready(milliseconds: Int)
        case failed(String)
    }

    enum Answer: Sendable {
        /// - Parameter trouble: the first problem on the way; nil if there was none.
        case ended(PushOutcome, attempts: Int, milliseconds: Int, trouble: String?)
        /// An answer or GOAWAY refused the credential, so waiting has no use.
        case credentialRefused(APNsFarewell)
        case notSent(String)
    }

    /// Completes after TCP, TLS with a verified certificate, and the peer's SETTINGS. The first failure ends it.
    func open(endpoint: APNsEndpoint, credential: APNsCredential, limits: APNsLimits) async -> Connecting {
        var limits = limits
        limits.connectTimeoutNanos = 5_000_000_000
        limits.connectionsMax = 1
        // As long as the worker holds a push.
        limits.holdNanos = min(limits.holdNanos, 10_000_000_000)
        let started = Loop.monotonicNanos()
        let made: APNsClient
        do throws(APNsFault) {
            made = try APNsClient(
                loop: loop, endpoint: endpoint, credential: credential, limits: limits,
                metrics: APNsMetrics(registry: MetricsRegistry(), app: ""), delegate: delegate)
        } catch {
            return .failed(error.description)
        }
        client = made
        return await withCheckedContinuation { continuation in
            delegate.onEvent = { [delegate] event in
                let outcome: Connecting
                switch event {
                case .usable: outcome = .ready(milliseconds: Self.milliseconds(since: started))
                case .unusable(let cause): outcome = .failed(cause)
                case .credentialPaused(let reason):
                    outcome = .failed("the credential is refused: \(made.farewell?.description ?? reason.text)")
                case .credentialResumed, .hasRoom, .drained: return
                }
                delegate.onEvent = nil
                continuation.resume(returning: outcome)
            }
            made.start()
        }
    }

    /// Sends one push and waits for its end. A refused credential ends the wait. So does a second loss of all
    /// connections: after the first loss the push is sent again, or its answer still arrives.
    func send(_ push: Push?) async -> Answer {
        guard let push else { return .notSent("such a push cannot be made") }
        guard let client else { return .notSent("not connected") }
        if let farewell = client.farewell, client.credentialPause != nil { return .credentialRefused(farewell) }
        let started = Loop.monotonicNanos()
        return await withCheckedContinuation { continuation in
            var trouble: String?
            func end(_ answer: Answer) {
                delegate.onEvent = nil
                delegate.onFinish = nil
                continuation.resume(returning: answer)
            }
            delegate.onFinish = { outcome, attempts in
                end(
                    .ended(
                        outcome, attempts: attempts, milliseconds: Self.milliseconds(since: started), trouble: trouble))
            }
            delegate.onEvent = { event in
                switch event {
                case .credentialPaused(let reason):
                    end(.credentialRefused(client.farewell ?? .answer(status: 403, reason: reason)))
                case .unusable(let cause):
                    if let trouble { return end(.notSent(trouble)) }
                    trouble = cause
                case .usable, .credentialResumed, .hasRoom, .drained: break
                }
            }
            switch client.send(push) {
            case .taken: break
            case .unfit(let fault): end(.notSent(fault.text))
            case .held, .full, .closed: end(.notSent("the client accepts no push"))
            }
        }
    }

    /// Our clock minus that of APNs in seconds; nil if no answer contained a time.
    var clockAheadSeconds: Int64? { client?.clockAheadSeconds }

    nonisolated func close() async {
        await closeClient()
        loop.stop()
    }

    private func closeClient() {
        delegate.onEvent = nil
        delegate.onFinish = nil
        client?.close()
        client = nil
    }

    private static func milliseconds(since nanos: UInt64) -> Int {
        Int((Loop.monotonicNanos() &- nanos) / 1_000_000)
    }
}

/// The client's delegate, for that client's loop only.
private final class CommandAPNsDelegate: APNsClientDelegate {
    var onEvent: ((APNsClientEvent) -> Void)?
    var onFinish: ((PushOutcome, Int) -> Void)?

    func apns(_ client: APNsClient, didFinish tag: UInt64, outcome: PushOutcome, attempts: Int) {
        onFinish?(outcome, attempts)
    }

    func apns(_ client: APNsClient, stateChanged event: APNsClientEvent) { onEvent?(event) }
}
