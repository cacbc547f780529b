// SPDX-License-Identifier: Apache-2.0
/// What a server is for others: a master, or a replica of one.
struct ReplicationRole {
    /// `master_replid`.
    var id: String
    /// Nil for a master.
    var master: (host: String, port: UInt16)?
    /// Replicas with a working link, of a master.
    var liveReplicas = 0
    var replicas: [(host: String, port: UInt16)] = []

    init(id: String) { self.id = id }
}

/// A replica's link to its master.
struct ReplicationLink {
    var isUp = true
}
