import APNs
import EventLoop
import Telemetry

/// One APNs client for a command: connects, sends single pushes, each awaited. An actor on a loop of its own.
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
        case ended(PushOutcome, attempts: Int, milliseconds: Int)
        /// The credential is refused: the push waits for nothing that could come.
        case credentialRefused(APNsReason)
        case notSent(String)
    }

    /// TCP, TLS with the certificate verified, and the peer's SETTINGS; the first failure ends it.
    func open(endpoint: APNsEndpoint, credential: APNsCredential, limits: APNsLimits) async -> Connecting {
        var limits = limits
        limits.connectTimeoutNanos = 5_000_000_000
        limits.connectionsMax = 1
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
        let event = await withCheckedContinuation { continuation in
            delegate.onEvent = { continuation.resume(returning: $0) }
            made.start()
        }
        switch event {
        case .usable: return .ready(milliseconds: Self.milliseconds(since: started))
        case .unusable(let cause): return .failed(cause)
        case .credentialPaused(let reason): return .failed("the credential is refused: \(reason.text)")
        case .credentialResumed, .hasRoom, .drained: return .failed("no connection")
        }
    }

    /// Sends one push and waits for its end; a lost connection or a refused credential ends the wait.
    func send(_ push: Push) async -> Answer {
        guard let client else { return .notSent("not connected") }
        let started = Loop.monotonicNanos()
        let delegate = delegate
        return await withCheckedContinuation { continuation in
            delegate.onFinish = { outcome, attempts in
                delegate.onEvent = nil
                continuation.resume(
                    returning: .ended(outcome, attempts: attempts, milliseconds: Self.milliseconds(since: started)))
            }
            delegate.onEvent = { event in
                delegate.onFinish = nil
                if case .credentialPaused(let reason) = event {
                    continuation.resume(returning: .credentialRefused(reason))
                } else if case .unusable(let cause) = event {
                    continuation.resume(returning: .notSent("the connection was lost: \(cause)"))
                } else {
                    continuation.resume(returning: .notSent("the connection was lost"))
                }
            }
            let admission = client.send(push)
            guard admission != .taken else { return }
            delegate.onFinish = nil
            delegate.onEvent = nil
            if case .unfit(let fault) = admission {
                continuation.resume(returning: .notSent(fault.text))
            } else {
                continuation.resume(returning: .notSent("the client takes no push"))
            }
        }
    }

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

/// The client's delegate; each closure hears one thing and is gone. On that client's loop only.
private final class CommandAPNsDelegate: APNsClientDelegate {
    var onEvent: ((APNsClientEvent) -> Void)?
    var onFinish: ((PushOutcome, Int) -> Void)?

    func apns(_ client: APNsClient, didFinish tag: UInt64, outcome: PushOutcome, attempts: Int) {
        let hear = onFinish
        onFinish = nil
        hear?(outcome, attempts)
    }

    func apns(_ client: APNsClient, stateChanged event: APNsClientEvent) {
        let isNews =
            switch event {
            case .usable, .unusable, .credentialPaused: true
            case .credentialResumed, .hasRoom, .drained: false
            }
        guard isNews, let hear = onEvent else { return }
        onEvent = nil
        hear(event)
    }
}
