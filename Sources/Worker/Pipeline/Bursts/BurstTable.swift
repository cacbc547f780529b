import PushCore

/// Bursts of alerts (`coalesce.window_s`): of each (app, user, conversation) the first alert goes at once, and what
/// follows within the window waits for its end, to go as one push.
///
/// A machine without clock and without I/O. Messages of one conversation come from one partition, so one shard sees a
/// burst whole. What waits is in memory with its offset unsettled: a crash hands it to the partition's next owner, who
/// alerts it as if it had just come. A window that sent a merged push opens anew, so that a burst alerts once per
/// window; one in which nothing waited is over.
struct BurstTable<Member> {
    /// (app, user, conversation), hashed.
    typealias Key = PushID

    private struct Burst {
        /// Of the present window; an end that was planned for an earlier one means nothing.
        var window: UInt32
        var waiting: [Member] = []
        /// The window is over, and these are being looked at: who has answered, and whether it is still to be told.
        var closing: [(member: Member, isAlive: Bool)] = []
        var unanswered = 0
    }

    private var bursts: [Key: Burst] = [:]
    private var nextWindow: UInt32 = 0
    /// Members that wait in all windows together.
    private(set) var waitingCount = 0
    /// Above it a window ends early: what waits takes a place that others need.
    let waitingMax: Int

    /// Windows that are open or closing.
    var count: Int { bursts.count }

    init(waitingMax: Int) {
        self.waitingMax = max(1, waitingMax)
    }

    enum Arrival: Equatable {
        /// A window opens with it, whose end the caller plans; the alert goes now.
        case goesNow(window: UInt32)
        case waits
        /// It waits, and the window is to be ended now for want of room.
        case waitsNoLonger(window: UInt32)
    }

    /// An alert that may wait.
    mutating func arrive(_ member: Member, of key: Key) -> Arrival {
        guard let index = bursts.index(forKey: key) else {
            let window = takeWindow()
            bursts[key] = Burst(window: window)
            return .goesNow(window: window)
        }
        bursts.values[index].waiting.append(member)
        waitingCount += 1
        // One that is closing is on its way already.
        guard waitingCount > waitingMax, bursts.values[index].unanswered == 0 else { return .waits }
        return .waitsNoLonger(window: bursts.values[index].window)
    }

    /// The end of a window: those who waited, oldest first, each to be answered for by its place. Empty: it is over, or
    /// was before.
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

    /// Members wait for the end of its window, or are being looked at.
    func isWaiting(_ key: Key) -> Bool {
        guard let burst = bursts[key] else { return false }
        return !burst.waiting.isEmpty || burst.unanswered > 0
    }

    enum Close {
        /// Others have yet to answer.
        case pending
        /// These are to be told in one push, newest last; the window opened anew, and its end is to be planned.
        case merged([Member], window: UInt32)
        /// Nothing is left to tell. The window is over; a number: others came meanwhile, and theirs is to be ended now.
        case nothing(endsNow: UInt32?)
    }

    /// One who waited was looked at.
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
