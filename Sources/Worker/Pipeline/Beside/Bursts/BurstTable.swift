// SPDX-License-Identifier: Apache-2.0
import PushCore

/// Bursts of alerts (`coalesce.window_s`): for each (app, user, conversation) the first alert goes at once, and later
/// ones within the window wait for its end and become one push.
///
/// A machine without clock and without I/O. Messages of one conversation come from one partition, so one shard sees a
/// whole burst. Waiting alerts are in memory with unsettled offsets: after a crash the partition's next owner treats
/// them as new. A window that sent a merged push opens again, so that a burst alerts once per window. A window without
/// waiting alerts ends.
struct BurstTable<Member> {
    /// The hash of (app, user, conversation).
    typealias Key = PushID

    private struct Burst {
        /// Number of the present window. A scheduled end of an earlier one has no effect.
        var window: UInt32
        var waiting: [Member] = []
        /// The window is over, and these alerts are being checked: the answers so far, and whether each is still to be
        /// pushed.
        var closing: [(member: Member, isAlive: Bool)] = []
        var unanswered = 0
    }

    private var bursts: [Key: Burst] = [:]
    private var nextWindow: UInt32 = 0
    /// Waiting alerts in all windows together.
    private(set) var waitingCount = 0
    /// Above this number a window ends early, because waiting alerts use places that others need.
    let waitingMax: Int

    /// Open or closing windows.
    var count: Int { bursts.count }

    init(waitingMax: Int) {
        self.waitingMax = max(1, waitingMax)
    }

    enum Arrival: Equatable {
        /// A window opens with it, and the caller schedules its end. The alert goes now.
        case goesNow(window: UInt32)
        case waits
        /// The alert waits, and the window must end now: there is no more room, or the caller asked for it.
        case waitsNoLonger(window: UInt32)
    }

    /// An alert that may wait.
    mutating func arrive(_ member: Member, of key: Key, endsNow: Bool = false) -> Arrival {
        guard let index = bursts.index(forKey: key) else {
            let window = takeWindow()
            bursts[key] = Burst(window: window)
            return .goesNow(window: window)
        }
        bursts.values[index].waiting.append(member)
        waitingCount += 1
        // A closing window is already ending.
        guard endsNow || waitingCount > waitingMax, bursts.values[index].unanswered == 0 else { return .waits }
        return .waitsNoLonger(window: bursts.values[index].window)
    }

    /// The end of a window: the waiting alerts, oldest first. Each must be answered for by its index. Empty if the
    /// window is over.
    mutating func end(_ key: Key, window: UInt32) -> [Member] {
        guard let index = bursts.index(forKey: key), bursts.values[index].window == window,
            bursts.values[index].unanswered == 0
        else { return [] }
        let members = bursts.values[index].waiting
        guard !members.isEmpty else {
            bursts.remove(at: index)
            return []
        }
        waitingCount -= members.count
        bursts.values[index].waiting = []
        bursts.values[index].closing = members.map { ($0, false) }
        bursts.values[index].unanswered = members.count
        return members
    }

    /// The alerts that wait for the end of its window; none if others are being checked, as the window cannot end then.
    func waiting(_ key: Key) -> [Member] {
        guard let burst = bursts[key], burst.unanswered == 0 else { return [] }
        return burst.waiting
    }

    /// - Returns: whether alerts wait for the end of its window, or are being checked.
    func isWaiting(_ key: Key) -> Bool {
        guard let burst = bursts[key] else { return false }
        return !burst.waiting.isEmpty || burst.unanswered > 0
    }

    enum Close {
        /// Other answers are outstanding.
        case pending
        /// These become one push, newest last. The window opened again, and its end must be scheduled.
        case merged([Member], window: UInt32)
        /// Nothing is left to push. The window is over; with a number, others arrived in the meantime, and theirs must
        /// end now.
        case nothing(endsNow: UInt32?)
    }

    /// One waiting alert was checked.
    mutating func answered(_ key: Key, place: Int, isAlive: Bool) -> Close {
        guard let index = bursts.index(forKey: key), bursts.values[index].unanswered > 0,
            bursts.values[index].closing.indices.contains(place)
        else { return .pending }
        bursts.values[index].closing[place].isAlive = isAlive
        bursts.values[index].unanswered -= 1
        guard bursts.values[index].unanswered == 0 else { return .pending }
        let alive = bursts.values[index].closing.filter(\.isAlive).map(\.member)
        bursts.values[index].closing = []
        let window = takeWindow()
        bursts.values[index].window = window
        if !alive.isEmpty { return .merged(alive, window: window) }
        if !bursts.values[index].waiting.isEmpty { return .nothing(endsNow: window) }
        bursts.remove(at: index)
        return .nothing(endsNow: nil)
    }

    private mutating func takeWindow() -> UInt32 {
        nextWindow &+= 1
        return nextWindow
    }
}
