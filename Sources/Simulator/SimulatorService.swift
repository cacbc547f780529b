// SPDX-License-Identifier: Apache-2.0
public import EventLoop
public import HTTP2

/// A simulator for callers on any thread: an actor that runs on the simulator's loop.
///
/// The loop must be running. Call `stop` before the loop stops.
public actor SimulatorService {
    private let loop: Loop
    private var simulator: APNsSimulator?

    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Creates a service that does not listen yet.
    public init(loop: Loop) {
        self.loop = loop
    }

    /// Binds and listens. Returns the port.
    @discardableResult
    public func start(_ configuration: SimulatorConfiguration) throws(SimulatorFault) -> UInt16 {
        let made = try APNsSimulator(loop: loop, configuration: configuration)
        simulator?.close()
        simulator = made
        return made.port
    }

    /// Closes the listener and every connection. The ledger's file is then complete.
    public func stop() {
        simulator?.close()
        simulator = nil
    }

    /// Counters since `start`.
    public var counters: SimulatorCounters { simulator?.counters ?? SimulatorCounters() }

    /// The ledger entries, if the mode keeps them in memory.
    public var entries: [LedgerEntry] { simulator?.entries ?? [] }

    /// - Returns: the ledger entries and removes them.
    public func takeEntries() -> [LedgerEntry] { simulator?.takeEntries() ?? [] }

    /// The reason why the simulator stopped answering; nil in normal operation.
    public var ledgerFault: SimulatorFault? { simulator?.ledgerFault }

    /// Replaces the rules.
    public func setScenario(_ scenario: Scenario) { simulator?.setScenario(scenario) }

    /// Closes every connection without notice.
    public func closeConnections() { simulator?.closeConnections() }

    /// Sends GOAWAY on every connection.
    public func goAway(_ code: HTTP2ErrorCode = .noError, reason: String? = nil) {
        simulator?.goAway(code, reason: reason)
    }

    /// Changes the stream limit of all connections.
    public func setStreamsMax(_ limit: UInt32) { simulator?.setStreamsMax(limit) }
}
