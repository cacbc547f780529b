// SPDX-License-Identifier: Apache-2.0
/// The totals of a world.
public struct WorldTally: Sendable {
    /// Records by kind.
    public internal(set) var records: [String: Int] = [:]
    public internal(set) var bytes = 0
    /// Records of `im.events`.
    public internal(set) var events = 0
    /// Users named by messages.
    public internal(set) var named = 0
    /// Members of the groups that got messages, senders included.
    public internal(set) var members = 0
    public internal(set) var firstMs: Int64?
    public internal(set) var lastMs: Int64?

    public var count: Int { records.values.reduce(0, +) }
}
