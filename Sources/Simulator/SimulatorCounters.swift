// SPDX-License-Identifier: Apache-2.0
/// Counters of a simulator since its start.
public struct SimulatorCounters: Sendable, Equatable {
    /// Connections accepted, and connections open now.
    public var connections = 0
    public var connectionsOpen = 0
    /// Complete requests received.
    public var requests = 0
    /// Requests answered 200.
    public var accepted = 0
    /// Rejections by reason.
    public var rejected: [String: Int] = [:]
    /// Scenario faults by kind.
    public var faults: [String: Int] = [:]
    /// Largest number of open streams on one connection.
    public var streamsPeak = 0
    /// Largest number of bytes of one client's header fields in the HPACK table. Apple asks to keep paths and tokens
    /// out of it.
    public var headerTablePeak = 0
    /// Distinct provider tokens seen.
    public var tokens = 0

    /// Creates counters of zero.
    public init() {}
}
