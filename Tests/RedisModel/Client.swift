// SPDX-License-Identifier: Apache-2.0
/// The name of a connection of a `Server`.
public struct ClientID: Hashable, Sendable, Comparable {
    public let number: Int

    public static func < (left: ClientID, right: ClientID) -> Bool { left.number < right.number }
}

/// One connection, as its server sees it.
struct Client {
    let id: ClientID
    var reader = RequestReader()
    var user: String?
    var name = Bytes()
    var database = 0
    var version = 2
    /// The next command may reach a slot that arrives here.
    var isAsking = false
    /// READONLY: a replica answers for its master.
    var readsReplica = false
    /// Commands since MULTI.
    var queue: [[Bytes]]?
    var isQueueBroken = false
    var isClosing = false
}
