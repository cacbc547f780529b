// SPDX-License-Identifier: Apache-2.0
import Kafka

/// An app's part of the work of its shard, and whether it has its share (`limits.share`).
///
/// Counted by `WorkTable`. A single app shares with nobody, and further work waits in Kafka.
struct AppInHand {
    var recipients = 0
    var events = 0
    /// Bytes of the events' records.
    var bytes = 0
    /// Events of the events topic, by its partition.
    var ofPartition: [Int32: Int] = [:]
    /// Events of many recipients with an incompletely started audience.
    var expanding = 0
    /// Its pushes delayed the others: since when it exceeds its share of APNs' queues, monotonic; nil if it does not.
    var blockedNanos: UInt64?
    /// The last time. It is detected at once if it happens again within a minute.
    var lastBlockedNanos: UInt64?

    /// The part of each bound of a shard, 0-1.
    var share: Double

    init(share: Double) { self.share = share }

    /// Further events are parked.
    ///
    /// - Parameter partition: a partition of the events topic; its apps share one window.
    func isFull(_ limits: PipelineLimits, partition: Int32) -> Bool {
        guard limits.isShared else { return false }
        return isOver(ofPartition[partition] ?? 0, limits) || isOverShare(limits)
    }

    /// Measured against the point at which reading pauses: below it the other apps are read.
    private func isOver(_ count: Int, _ limits: PipelineLimits) -> Bool {
        Double(count) >= max(1, share * Double(limits.sharedRecords))
    }

    /// The app has its share of some bound of the shard.
    func isOverShare(_ limits: PipelineLimits) -> Bool {
        guard limits.isShared else { return false }
        return blockedNanos != nil || Double(recipients) >= share * Double(limits.recipientsMax)
            || Double(events) >= share * Double(limits.recipientsMax)
            || Double(bytes) >= share * Double(limits.window.bytes) * Double(limits.window.pausePercent) / 100
            || Double(expanding) >= share * Double(limits.expandingMax)
    }

    /// Another recipient may start.
    func hasRoom(_ limits: PipelineLimits) -> Bool {
        !limits.isShared || Double(recipients) < share * Double(limits.recipientsMax)
    }

    /// Parked records may come back: half of the share is free.
    ///
    /// - Parameter pushesAhead: of the app, waiting for streams.
    func hasRoomAgain(_ limits: PipelineLimits, pushesAhead: Int = 0) -> Bool {
        guard limits.isShared else { return true }
        return blockedNanos == nil && Double(pushesAhead) * 2 < share * Double(limits.pushesAheadMax)
            && Double(recipients) * 2 < share * Double(limits.recipientsMax)
            && Double(bytes) * 2 < share * Double(limits.window.bytes)
            && Double(expanding) * 2 < share * Double(limits.expandingMax)
    }

    private static let rememberedNanos: UInt64 = 60_000_000_000

    /// Called several times a second.
    ///
    /// - Parameters:
    ///   - pushesAhead: the app's pushes that wait for streams.
    ///   - isHeld: reading has stopped for lack of room for a while.
    mutating func noteWaiting(pushesAhead: Int, isHeld: Bool, _ limits: PipelineLimits, nowNanos: UInt64) {
        if !limits.isShared { return }
        let mine = share * Double(limits.pushesAheadMax)
        if blockedNanos != nil {
            if Double(pushesAhead) * 4 < mine { blockedNanos = nil } else { lastBlockedNanos = nowNanos }
            return
        }
        let wasLately = lastBlockedNanos.map { nowNanos &- $0 < Self.rememberedNanos } ?? false
        guard Double(pushesAhead) >= mine, isHeld || wasLately else { return }
        blockedNanos = nowNanos
        lastBlockedNanos = nowNanos
    }
}
