// SPDX-License-Identifier: Apache-2.0
import PushCore

/// Changes that are made once more: another Redis process serves their keys, or an operator's Redis has older data.
///
/// At most `atOnce` of them are under way, next to newly read changes.
struct ChangeRepetition {
    struct Change {
        /// At its first step.
        let task: UserStateTask
        let app: AppContext
    }

    static let atOnce = 256
    /// Decisions wait no longer for a repetition that does not end.
    private static let waitNanos: UInt64 = 2_000_000_000

    /// Accepted by Redis; repeated if another process serves their keys.
    private var recent = RecentChanges<Change>()
    /// Those that are still to be repeated: from `first` on.
    private var waiting: [Change] = []
    private var first = 0
    private var inHand = 0
    /// When the present repetition began, and when the last one ended.
    private var begunNanos: UInt64 = 0
    private var endedNanos: UInt64 = 0

    var isUnderWay: Bool { inHand > 0 }

    mutating func append(_ task: UserStateTask, _ app: AppContext) {
        waiting.append(Change(task: task, app: app))
    }

    mutating func keep(_ task: UserStateTask, _ app: AppContext, generation: UInt32, takenNanos: UInt64) {
        recent.append(
            Change(task: task, app: app), weight: task.weight, generation: generation, takenNanos: takenNanos)
    }

    /// Queues the kept changes of keys that another process serves now.
    ///
    /// - Returns: how many there are.
    mutating func takeMoved(_ generation: (UserStateTask) -> UInt32) -> Int {
        let moved = recent.takeMoved { generation($0.task) }
        waiting += moved
        return moved.count
    }

    /// The next one to begin; nil if none waits, or enough are under way.
    mutating func next(nowNanos: UInt64) -> Change? {
        guard first < waiting.count else {
            forget()
            return nil
        }
        if inHand >= Self.atOnce { return nil }
        if inHand == 0 { begunNanos = nowNanos }
        inHand += 1
        defer { first += 1 }
        return waiting[first]
    }

    /// One has ended, or is left to another owner.
    mutating func left() { inHand -= 1 }

    /// - Returns: whether none is under way.
    mutating func noteEnd(nowNanos: UInt64) -> Bool {
        if isUnderWay { return false }
        endedNanos = nowNanos
        return true
    }

    /// Those that have not begun are left.
    mutating func forget() {
        waiting = []
        first = 0
    }

    /// A read of that time may lack changes that a server of Redis lost in a failover.
    func mayHaveMissed(readNanos: UInt64, nowNanos: UInt64, isRefused: Bool) -> Bool {
        if inHand == 0 { return readNanos < endedNanos }
        return !isRefused && nowNanos &- begunNanos < Self.waitNanos
    }
}

extension UserStateTask {
    /// The change at its first step, to be made again if Redis loses it; nil for a report. A bind also takes the token from its
    /// former owners again: their copies are under other keys, and after their loss nothing shows their user.
    var repetition: UserStateTask? {
        switch state.change {
        case .openReport, .arrivedReport: nil
        case .bind, .unbind, .settings, .mute, .read, .badgeReport, .ack, .forget: fromStart(nowMs: nowMs)
        }
    }

    /// The memory for keeping it, in ordinary changes: all except acks have few texts, each of a bounded length.
    fileprivate var weight: Int {
        if case .ack(_, _, let ids) = state.change { return 1 + ids.count / 4 }
        return 1
    }
}
