// SPDX-License-Identifier: Apache-2.0
import Crypto
public import EventLoop
public import HTTP2
import JSON
import Queues
import Telemetry

/// APNs on this machine: real TLS and HTTP/2, Apple's checks, answers and faults by scenario, and a ledger of all
/// requests.
///
/// Loop-bound: created, used and released on its loop's thread. `SimulatorService` wraps it for other threads.
public final class APNsSimulator {
    /// The bound port.
    public private(set) var port: UInt16 = 0
    /// Counters since the start.
    public internal(set) var counters = SimulatorCounters()

    /// An answer that waits.
    private struct DelayedAnswer {
        var connection: Int
        var exchange: Int
        var stream: Int32
    }

    let loop: Loop
    let configuration: SimulatorConfiguration
    let check: RequestCheck
    let ledger: Ledger
    var scenario: Scenario
    private(set) var streamsCeiling: UInt32

    private var verifier: TokenVerifier
    /// The broadcast channels that were created.
    var channels = ChannelDirectory()
    private var fingerprints: Set<String> = []
    private let parser = JSONParser(maxBytes: Exchange.bodyBytesMax)
    private var listener: Listener?
    private var connections: [Int: SimulatedConnection] = [:]
    private let startNanos: UInt64
    private var delayed = DueQueue<UInt64, DelayedAnswer>()
    private var delayTimer: LoopTimer?
    private var steps: ArraySlice<Scenario.SettingsStep>
    private var stepTimer: LoopTimer?
    private var goAwayTimer: LoopTimer?
    private var keyThrottles: [String: TokenThrottle] = [:]
    private var identifiers: UInt64 = 0

    /// Creates a broadcast channel of the app, as a request does.
    public func makeChannel(of bundleID: String) -> String { channels.make(bundleID, policy: 0) }

    /// Binds and listens at once.
    public init(loop: Loop, configuration: SimulatorConfiguration) throws(SimulatorFault) {
        loop.assertOnLoop()
        self.loop = loop
        self.configuration = configuration
        check = RequestCheck(topics: configuration.topics)
        ledger = try Ledger(configuration.ledger)
        verifier = TokenVerifier(keys: configuration.keys)
        scenario = configuration.scenario
        steps = scenario.settings[...]
        streamsCeiling = scenario.connection.streams ?? configuration.streamsMax
        startNanos = loop.nowNanos
        do {
            var tls: TLSServerContext?
            if let certificate = configuration.certificate {
                let identity = TLSIdentity.pem(
                    certificate: certificate.chainPEM, key: Secret(bytes: certificate.privateKeyPEM))
                tls = try TLSServerContext(identity: identity, alpn: ["h2"])
            }
            let listener = try Listener(loop: loop, host: configuration.host, port: configuration.port, tls: tls) {
                [unowned self] in self.accept($0)
            }
            port = listener.port
            self.listener = listener
        } catch {
            throw SimulatorFault("the APNs simulator cannot start: \(error)")
        }
        delayTimer = LoopTimer(loop: loop) { [unowned self] in self.answerDue() }
        stepTimer = LoopTimer(loop: loop) { [unowned self] in self.takeSteps() }
        goAwayTimer = LoopTimer(loop: loop) { [unowned self] in
            self.goAway(reason: "Shutdown")
            self.armGoAway()
        }
        armSteps()
        armGoAway()
    }

    /// Stops listening and closes every connection.
    public func close() {
        loop.assertOnLoop()
        listener?.close()
        listener = nil
        delayTimer?.cancel()
        stepTimer?.cancel()
        goAwayTimer?.cancel()
        closeConnections()
        ledger.flush()
    }

    // MARK: For tests, while it runs

    /// The ledger entries, if the mode keeps them in memory.
    public var entries: [LedgerEntry] { ledger.entries }

    /// - Returns: the ledger entries and removes them.
    public func takeEntries() -> [LedgerEntry] { ledger.takeEntries() }

    /// The reason why the simulator stopped answering: the ledger's file cannot be written.
    public var ledgerFault: SimulatorFault? { ledger.fault }

    /// Replaces the rules. Their times still count from the simulator's start. Connection properties apply to new
    /// connections; a stream limit applies to all.
    public func setScenario(_ scenario: Scenario) {
        self.scenario = scenario
        steps = scenario.settings[...]
        if let streams = scenario.connection.streams { setStreamsMax(streams) }
        armSteps()
        goAwayTimer?.cancel()
        armGoAway()
    }

    /// Closes every connection without notice.
    public func closeConnections() {
        for connection in connectionsInOrder { connection.close() }
    }

    /// Sends GOAWAY on every connection. Requests received so far are still answered.
    public func goAway(_ code: HTTP2ErrorCode = .noError, reason: String? = nil) {
        for connection in connectionsInOrder {
            connection.goAway(lastStreamID: connection.session.lastProcessedStreamID, code, reason: reason)
            connection.flush()
        }
    }

    /// Changes the stream limit of all present and future connections.
    public func setStreamsMax(_ limit: UInt32) {
        streamsCeiling = limit
        for connection in connectionsInOrder {
            connection.updateStreamLimit()
            connection.flush()
        }
    }

    // MARK: For connections

    var asksForToken: Bool { verifier.asksForToken }
    var isDevelopment: Bool { configuration.isDevelopment }
    var hasRules: Bool { !scenario.rules.isEmpty }
    var wallSeconds: Int64 { loop.wallMs / 1000 }
    var sinceStartMs: Int64 { Int64(clamping: (loop.nowNanos &- startNanos) / 1_000_000) }

    var streamsAtStart: UInt32 {
        asksForToken
            ? min(scenario.connection.streamsAtStart ?? configuration.streamsAtStart, streamsCeiling) : streamsCeiling
    }

    var shrinksOnRejection: Bool { scenario.connection.shrinksOnRejection ?? configuration.shrinksOnRejection }

    /// - Returns: whether a genuine token, new for its team's key, comes too soon.
    func appearsTooSoon(_ token: TokenVerifier.Standing, minMs: Int64) -> Bool {
        keyThrottles[token.teamID + "." + token.keyID, default: TokenThrottle()].appearsTooSoon(
            token.fingerprint, nowMs: sinceStartMs, minMs: minMs)
    }

    func standing(of authorization: ArraySlice<UInt8>) -> TokenVerifier.Standing {
        let standing = verifier.standing(authorization)
        if fingerprints.count < 10_000, fingerprints.insert(standing.fingerprint).inserted { counters.tokens += 1 }
        return standing
    }

    func isObject(_ body: [UInt8]) -> Bool {
        switch parser.parse(body, { (root) throws(Never) in root.isObject }) {
        case .read(let isObject): isObject
        case .refused: false
        }
    }

    func sawStreams(_ count: Int) {
        if count > counters.streamsPeak { counters.streamsPeak = count }
    }

    /// An identifier for a request without one: unique, of UUID form, not secret.
    func makeIdentifier() -> [UInt8] {
        identifiers &+= 1
        let digits = Array(String(identifiers, radix: 16).utf8)
        let low = [UInt8](repeating: 0x30, count: max(0, 12 - digits.count)) + digits.suffix(12)
        return Array("ca411107-0000-4000-8000-".utf8) + low
    }

    func delay(_ delayMs: Int64, connection: Int, exchange: Int, stream: Int32) {
        let wait = UInt64(clamping: delayMs).multipliedReportingOverflow(by: 1_000_000).partialValue
        delayed.insert(
            DelayedAnswer(connection: connection, exchange: exchange, stream: stream), due: loop.nowNanos &+ wait)
        armDelays()
    }

    func remove(_ connection: SimulatedConnection) {
        guard connections.removeValue(forKey: connection.number) != nil else { return }
        counters.connectionsOpen -= 1
        counters.headerTablePeak = max(counters.headerTablePeak, connection.session.headerTableBytes)
    }

    // MARK: Private

    /// As they were accepted.
    private var connectionsInOrder: [SimulatedConnection] { connections.values.sorted { $0.number < $1.number } }

    private func accept(_ link: Link) {
        counters.connections += 1
        // If the session cannot be allocated, the link is released and so closed.
        guard let connection = try? SimulatedConnection(number: counters.connections, link: link, simulator: self)
        else { return }
        counters.connectionsOpen += 1
        connections[connection.number] = connection
    }

    private func answerDue() {
        var touched: Set<Int> = []
        while let item = delayed.popDue(loop.nowNanos) {
            guard let connection = connections[item.connection] else { continue }
            connection.answerWaiting(item.exchange, stream: item.stream)
            touched.insert(item.connection)
        }
        for number in touched.sorted() { connections[number]?.flush() }
        armDelays()
    }

    private func armDelays() {
        guard let due = delayed.earliest else { return }
        let now = loop.nowNanos
        delayTimer?.arm(afterNanos: due > now ? due - now : 0)
    }

    private func takeSteps() {
        while let step = steps.first, step.afterMs <= sinceStartMs {
            steps = steps.dropFirst()
            setStreamsMax(step.maxConcurrentStreams)
        }
        armSteps()
    }

    private func armGoAway() {
        guard let everyMs = scenario.goAwayEveryMs else { return }
        goAwayTimer?.arm(afterNanos: UInt64(clamping: everyMs) &* 1_000_000)
    }

    private func armSteps() {
        guard let step = steps.first else { return }
        stepTimer?.arm(afterNanos: UInt64(clamping: max(0, step.afterMs - sinceStartMs)) &* 1_000_000)
    }
}
