public import EventLoop
public import HTTP2

/// A simulator for callers on any thread: an actor that runs on the simulator's loop.
///
/// The loop must be running. Call `stop` before the loop stops.
public actor SimulatorService {
    private let loop: Loop
    private var simulator: APNsSimulator?

    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// A service that does not listen yet.
    public init(loop: Loop) {
        self.loop = loop
    }

    /// Binds, listens, and returns the port.
    @discardableResult
    public func start(_ configuration: SimulatorConfiguration) throws(SimulatorFault) -> UInt16 {
        let made = try APNsSimulator(loop: loop, configuration: configuration)
        simulator?.close()
        simulator = made
        return made.port
    }

    /// Closes the listener and every connection; the ledger's file is complete afterwards.
    public func stop() {
        simulator?.close()
        simulator = nil
    }

    /// What was seen since `start`.
    public var counters: SimulatorCounters { simulator?.counters ?? SimulatorCounters() }

    /// The ledger so far, where the mode keeps it in memory.
    public var entries: [LedgerEntry] { simulator?.entries ?? [] }

    /// Hands the ledger so far over and forgets it.
    public func takeEntries() -> [LedgerEntry] { simulator?.takeEntries() ?? [] }

    /// Why nothing is answered any more; nil while all is well.
    public var ledgerFault: SimulatorFault? { simulator?.ledgerFault }

    /// Replaces the rules.
    public func setScenario(_ scenario: Scenario) { simulator?.setScenario(scenario) }

    /// Closes every connection without a word.
    public func closeConnections() { simulator?.closeConnections() }

    /// Sends GOAWAY on every connection.
    public func goAway(_ code: HTTP2ErrorCode = .noError, reason: String? = nil) {
        simulator?.goAway(code, reason: reason)
    }

    /// Changes the stream limit of all connections.
    public func setStreamsMax(_ limit: UInt32) { simulator?.setStreamsMax(limit) }
}
