// SPDX-License-Identifier: Apache-2.0
import Crypto
import EventLoop
import Support
import Telemetry

@testable import APNs

/// What a client told its owner.
enum Told: Sendable, Equatable {
    case outcome(tag: UInt64, PushOutcome, attempts: Int)
    case event(APNsClientEvent)
    case allDone
}

/// A client and a scripted peer on one loop; with a port given, the client talks to what listens there instead.
///
/// `@unchecked Sendable`: everything but `told` is touched on the loop's thread only, through `TestLoop.run`.
final class World: APNsClientDelegate, @unchecked Sendable {
    static let key = Result { try PrivateKey.generate() }

    let told = Facts<Told>()
    let peer: Peer
    /// Servers beside it, where a test has more.
    var extraPeers: [Peer] = []
    let metrics = MetricsRegistry()
    private(set) var outcomes: [UInt64: PushOutcome] = [:]
    private(set) var attempts: [UInt64: Int] = [:]
    private(set) var doubles = 0
    var expected = 0
    var onOutcome: ((UInt64, PushOutcome) -> Void)?
    var onHold: ((UInt64) -> Void)?
    /// Answers for pushes that waited; nil confirms each at once.
    var onCheck: ((UInt64, PushTicket) -> Void)?
    /// Checks that a test has not answered yet.
    var tickets: [(tag: UInt64, ticket: PushTicket)] = []
    /// What a test has to say on the loop when all is done.
    var atEnd: (() -> Void)?
    /// For a peer that is down at first.
    var isHealed = false
    /// When the peer stopped to answer; then for how long the client fed it.
    var frozenNanos: UInt64 = 0
    let endpoint: APNsEndpoint
    private var made: APNsClient?
    private let folder: TemporaryFolder
    private let headers: PushHeaders

    init(
        _ loop: Loop, limits: APNsLimits = World.quick, port: UInt16? = nil,
        _ change: (inout APNsEndpoint) -> Void = { _ in }
    ) throws {
        folder = try TemporaryFolder()
        peer = try Peer(loop: loop)
        headers = try PushHeaders(
            topic: "com.example.im", pushType: .alert, expirationSeconds: 4_000_000_000, collapseID: Array("c1".utf8))
        let caFile = try folder.write(try Peer.certificate.get().authorityPEM, to: "ca.pem")
        var endpoint = APNsEndpoint(host: "127.0.0.1", port: port ?? peer.port, caFile: caFile)
        change(&endpoint)
        self.endpoint = endpoint
        made = try APNsClient(
            loop: loop, endpoint: endpoint,
            credential: .token(key: try Self.key.get(), keyID: "ABC123DEFG", teamID: "DEF123GHIJ"), limits: limits,
            metrics: APNsMetrics(registry: metrics, app: "im"), delegate: self, seed: 11)
    }

    /// `quick`, with a second connection for pushes that stall on the first one.
    static var watchful: APNsLimits {
        var limits = quick
        limits.connectionsMax = 2
        limits.stallNanos = 100_000_000
        limits.pingAfterNanos = 40_000_000
        return limits
    }

    /// Waits so short that no test has to be patient; deadlines that no loaded machine misses, since a missed one breeds
    /// pushes that a test did not ask for.
    static var quick: APNsLimits {
        var limits = APNsLimits()
        limits.connectSpacingNanos = 1_000_000
        limits.connectBackoff = Backoff(baseNanos: 2_000_000, capNanos: 20_000_000)
        limits.retryBackoff = Backoff(baseNanos: 2_000_000, capNanos: 20_000_000)
        limits.connectionsMax = 1
        limits.answerNanos = 60_000_000_000
        limits.pingTimeoutNanos = 60_000_000_000
        limits.settingsTimeoutNanos = 60_000_000_000
        limits.connectTimeoutNanos = 60_000_000_000
        limits.connectBurst = 1_000_000
        limits.inFlightStart = limits.inFlightMax
        limits.stallNanos = 60_000_000_000
        return limits
    }

    var client: APNsClient {
        guard let made else { preconditionFailure("the world has ended") }
        return made
    }

    func push(
        _ tag: UInt64, payload: String = #"{"aps":{"alert":"hello"}}"#, expiresAtMs: Int64 = .max,
        token given: DeviceToken? = nil, isSuspect: Bool = false, lane: PushLane = .direct,
        headers own: PushHeaders? = nil
    ) -> Push {
        let text = String(tag, radix: 16)
        let hex = String(repeating: "0", count: 64 - text.count) + text
        guard let token = given ?? DeviceToken(hex) else { preconditionFailure("64 hex digits are a token") }
        return Push(
            tag: tag, token: token, headers: own ?? headers, id: PushID(high: 0x1122_3344_5566_7788, low: tag),
            payload: Array(payload.utf8), expiresAtMs: expiresAtMs, lane: lane, isSuspect: isSuspect)
    }

    func send(_ tags: ClosedRange<UInt64>, expiresAtMs: Int64 = .max) {
        expected += tags.count
        for tag in tags {
            let admission = client.send(push(tag, expiresAtMs: expiresAtMs))
            precondition(admission == .taken, "the test sends no more than fits")
        }
    }

    func apns(_ client: APNsClient, didFinish tag: UInt64, outcome: PushOutcome, attempts: Int) {
        if outcomes.updateValue(outcome, forKey: tag) != nil { doubles += 1 }
        self.attempts[tag] = attempts
        onOutcome?(tag, outcome)
        if expected <= 1000 { told.record(.outcome(tag: tag, outcome, attempts: attempts)) }
        if outcomes.count == expected { told.record(.allDone) }
    }

    func apns(_ client: APNsClient, didHold tag: UInt64) { onHold?(tag) }

    func apns(_ client: APNsClient, wantsCheck tag: UInt64, ticket: PushTicket) {
        if let onCheck { onCheck(tag, ticket) } else { client.confirm(ticket) }
    }

    func apns(_ client: APNsClient, stateChanged event: APNsClientEvent) { told.record(.event(event)) }

    func takeTickets() -> [(tag: UInt64, ticket: PushTicket)] {
        defer { tickets = [] }
        return tickets
    }

    var acceptedCount: Int {
        outcomes.values.count { if case .accepted = $0 { true } else { false } }
    }

    /// Requests seen per push.
    var seen: [UInt64: Int] {
        peer.requests.reduce(into: [:]) { $0[UInt64($1.token, radix: 16) ?? 0, default: 0] += 1 }
    }

    /// Waits until every push that was sent has its outcome.
    func allDone() async throws { _ = try await told.first { $0 == .allDone } }

    func end() {
        made?.close()
        made = nil
        // What a test hung in here holds connections, and they the peers.
        onOutcome = nil
        onHold = nil
        onCheck = nil
        atEnd = nil
        for peer in extraPeers + [peer] { peer.onRequest = { _, _ in } }
        extraPeers = []
    }
}

/// Runs a test body with a world of its own, and ends it whatever happens.
func withWorld(
    limits: APNsLimits = World.quick, port: UInt16? = nil, _ body: (TestLoop, World) async throws -> Void
) async throws {
    try await withWorld({ test in try World(test.loop, limits: limits, port: port) }, body)
}

/// The same with a world of the test's own making.
func withWorld(
    _ make: @Sendable (isolated TestLoop) throws -> World, _ body: (TestLoop, World) async throws -> Void
) async throws {
    let loop = try TestLoop()
    let world = try await loop.run { test in
        let world = try make(test)
        test.keep(world)
        return world
    }
    let result: Result<Void, any Error>
    do {
        try await body(loop, world)
        result = .success(())
    } catch {
        result = .failure(error)
    }
    await loop.run { _ in world.end() }
    await loop.end()
    try result.get()
}

extension World {
    /// An authority that signed nothing of the peer's.
    static func otherAuthority() throws -> [UInt8] { try MintedCertificate().authorityPEM }
}
