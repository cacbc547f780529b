/// What a simulator has seen since its start.
public struct SimulatorCounters: Sendable, Equatable {
    /// Connections accepted, and those open now.
    public var connections = 0
    public var connectionsOpen = 0
    /// Whole requests received.
    public var requests = 0
    /// Requests answered 200.
    public var accepted = 0
    /// Rejections by reason.
    public var rejected: [String: Int] = [:]
    /// Scenario faults by kind.
    public var faults: [String: Int] = [:]
    /// Most streams open at once on one connection.
    public var streamsPeak = 0
    /// Most bytes that one client's header fields took in the HPACK table: Apple asks to keep paths and tokens out of it.
    public var headerTablePeak = 0
    /// Distinct provider tokens seen.
    public var tokens = 0

    /// Nothing seen.
    public init() {}
}
