// SPDX-License-Identifier: Apache-2.0
/// The state of learning the slot map.
struct Topology {
    /// The present map; nil if there is none yet.
    var map: SlotMap?
    /// The node that was asked for one; nil if no query is open.
    var asked: NodeAddress?
    /// Index of the node asked first this time, so that another one is next.
    var turn = 0
    /// A new map was requested while a query was open, and its answer may be older than the request.
    var isWantedAgain = false
    /// Time of the last query, monotonic.
    var askedNanos: UInt64 = 0
    /// The reason why the last query gave no map.
    var fault: RedisFault?

    /// Minimum time between two queries.
    static let pauseNanos: UInt64 = 100_000_000
    /// Time between two checks.
    static let watchNanos: UInt64 = 250_000_000
    /// Time between two queries in normal operation.
    static let calmNanos: UInt64 = 15_000_000_000
    /// The id of the query; others belong to `KeyCounting`.
    static let inquiry: UInt64 = 0
}
