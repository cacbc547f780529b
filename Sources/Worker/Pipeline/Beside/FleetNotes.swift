// SPDX-License-Identifier: Apache-2.0
import Redis

/// Writes the process's note for the other workers, by the first shard's connection, and keeps the notes of all while
/// somebody reads the operator's page.
final class FleetNotes {
    private let shard: ShardContext
    private(set) var entries: [StateStore.FleetEntry] = []
    private var told = 0

    /// With the first note and once a minute.
    private static let sweepEvery = 12

    init(_ shard: ShardContext) { self.shard = shard }

    /// - Parameter note: nil: the process ends.
    func tell(_ id: String, _ note: [UInt8]?, readsAll: Bool) {
        if !readsAll { entries = [] }
        guard shard.store.client.isReady else { return }
        try? shard.store.tellFleet(
            id, note, readsAll: readsAll, sweeps: told % Self.sweepEvery == 0, nowMs: shard.nowMs,
            tag: Tag(.none, .fleet).bits)
        told &+= 1
    }

    func didRead(_ entries: [StateStore.FleetEntry]) {
        // A reply without notes is that of a question without reading.
        if !entries.isEmpty { self.entries = entries }
    }
}
