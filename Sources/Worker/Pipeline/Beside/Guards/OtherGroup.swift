// SPDX-License-Identifier: Apache-2.0
import PushCore
import Telemetry

/// Refuses a second consumer group on one Redis: each would push every message, and claims and marks are those of one group.
///
/// A beat names the other group while a worker of it lives. Until that is certain, nothing is read.
final class OtherGroup {
    /// Called once, with the other group's name: the process ends.
    var didMeet: (String) -> Void = { _ in }
    private let shard: ShardContext
    private let intakes: [Intake]
    /// The other group's name, and when (monotonic) it was first seen.
    private(set) var seen: (group: String, sinceNanos: UInt64)?
    private var hasTold = false

    /// A beat counts for ten seconds. After this time, a worker of the other group must have beaten again.
    private static let patienceNanos: UInt64 = 12_000_000_000

    init(_ shard: ShardContext, _ intakes: [Intake]) {
        self.shard = shard
        self.intakes = intakes
    }

    /// - Parameter group: nil: there is none.
    func didBeat(_ group: String?) {
        guard let group else {
            if seen != nil { show(nil) }
            return
        }
        guard let seen, seen.group == group else { return show((group, shard.nowNanos)) }
        if hasTold || shard.nowNanos &- seen.sinceNanos < Self.patienceNanos { return }
        hasTold = true
        shard.log.error(
            "another consumer group uses the same Redis: give each group a Redis of its own, or stop the other one",
            ["group": .string(shard.limits.group), "other": .string(group)])
        didMeet(group)
    }

    private func show(_ now: (group: String, sinceNanos: UInt64)?) {
        seen = now
        for intake in intakes { intake.block(.otherGroup, now != nil) }
    }
}
