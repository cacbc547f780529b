// SPDX-License-Identifier: Apache-2.0
/// All pushes of one client, each in exactly one state: waiting (for a route, in a lane), delayed, being checked by its
/// owner, or in flight.
///
/// One slot per push, with links inside the slots: a change of state allocates nothing, and removal from the middle of
/// a list costs the same as from its head. Bounded by `capacity`; a full table refuses and never drops. It has its own
/// memory instead of an array, so that a push is read in place and never retained for it.
struct PushTable: ~Copyable {
    typealias Slot = Int32

    enum Place: UInt8 { case free, waiting, delayed, checking, inFlight }

    /// The group of connections for a push.
    enum Route: UInt8 {
        case main
        /// For tokens that are probably dead.
        case suspect
    }

    /// The end of a push that waits.
    enum Ending: UInt8 {
        case none
        /// A newer push replaced it.
        case superseded
        /// The device backs off for longer than pushes wait here.
        case deferred
    }

    /// All data of a push except the push itself; plain bits, changed in place.
    struct Entry {
        fileprivate(set) var place: Place = .free
        /// The waiting list: a lane of the main route, or the suspects' list.
        fileprivate var list: UInt8 = 0
        /// Number of checks requested from its owner, wrapping.
        fileprivate var checks: UInt16 = 0
        /// Its neighbours in its list. `next` of a free slot is the next free one.
        var previous: Slot = -1
        var next: Slot = -1
        /// Index in the heap of delayed slots.
        var heapIndex: Int32 = -1
        fileprivate(set) var dueNanos: UInt64 = 0
        var history = PushHistory()
        var stream: Int32 = 0
        var connection: Int32 = -1
        var submittedNanos: UInt64 = 0
        /// The version of the request's provider token.
        var tokenVersion: Int32 = 0
        var status: Int32 = 0
        /// The connection to avoid for the next attempt, if there is another.
        var avoid: Int32 = -1
        var retryAfterSeconds: UInt32?
        /// Set when the request's deadline passed and its stream was reset.
        var isTimedOut = false
        /// Sent through a closed gate, to find out whether it can be opened.
        var isProbe = false
        /// Another attempt must be paid from the budget.
        var needsBudget = false
        /// How it ends in the next turn.
        var ending = Ending.none
        /// The size of the payload that its owner gives again before it is sent; 0 if the payload is here.
        fileprivate var droppedBytes: UInt16 = 0
        /// Number of pushes accepted before it.
        fileprivate(set) var order: UInt64 = 0
        /// From this time its owner is asked before it is sent.
        fileprivate(set) var checkDueNanos: UInt64 = .max

        var route: Route { list == PushTable.suspects ? .suspect : .main }
    }

    private static let suspects = UInt8(PushLane.allCases.count)

    let capacity: Int
    private var entries: UnsafeMutablePointer<Entry>
    /// Initialised unless the entry's state is `free`.
    private var pushes: UnsafeMutablePointer<Push>
    /// Slots with memory, and the highest number of slots in use so far.
    private var allocated = 64
    private var used = 0
    /// Head of the list of free slots, linked by `next`.
    private var firstFree: Slot = -1
    private var delayed = DelayedHeap()
    private var flying = PushList()
    private var checked = PushList()
    private var checkedSuspects = 0
    private var lists: [PushList]
    private var turns: LaneTurns
    /// One bit per lane of the main route with a waiting push.
    private var busyLanes: UInt8 = 0
    private var admitted: UInt64 = 0
    /// The headers of the last push without content.
    private var bareHeaders: PushHeaders?

    init(capacity: Int, shares: LaneShares = LaneShares()) {
        self.capacity = capacity
        turns = LaneTurns(shares)
        lists = Array(repeating: PushList(), count: Int(Self.suspects) + 1)
        entries = .allocate(capacity: allocated)
        pushes = .allocate(capacity: allocated)
    }

    deinit {
        for slot in 0..<used where entries[slot].place != .free { (pushes + slot).deinitialize(count: 1) }
        entries.deallocate()
        pushes.deallocate()
    }

    private mutating func grow() {
        let larger = allocated * 2
        let freshEntries = UnsafeMutablePointer<Entry>.allocate(capacity: larger)
        let freshPushes = UnsafeMutablePointer<Push>.allocate(capacity: larger)
        freshEntries.moveInitialize(from: entries, count: used)
        for slot in 0..<used where freshEntries[slot].place != .free {
            (freshPushes + slot).moveInitialize(from: pushes + slot, count: 1)
        }
        entries.deallocate()
        pushes.deallocate()
        entries = freshEntries
        pushes = freshPushes
        allocated = larger
    }

    private(set) var waitingCount = 0
    var inFlightCount: Int { flying.count }
    var delayedCount: Int { delayed.count }
    /// Pushes being checked by their owner.
    var checkingCount: Int { checked.count }
    var count: Int { waitingCount + flying.count + delayed.count + checked.count }
    var isFull: Bool { count >= capacity }

    /// Pushes that wait for the suspects' route.
    var suspectCount: Int { lists[Int(Self.suspects)].count }

    func waitingCount(_ route: Route) -> Int { route == .suspect ? suspectCount : waitingCount - suspectCount }

    func checkingCount(_ route: Route) -> Int { route == .suspect ? checkedSuspects : checked.count - checkedSuspects }

    /// The next push of the route by the lanes' shares. Each call is a turn.
    mutating func nextWaiting(_ route: Route) -> Slot? {
        switch route {
        case .main:
            guard let lane = turns.next(busy: busyLanes) else { return nil }
            return lists[Int(lane.rawValue)].head
        case .suspect:
            let head = lists[Int(Self.suspects)].head
            return head < 0 ? nil : head
        }
    }

    /// Any waiting push of the route, for its size. Not a turn.
    func anyWaiting(_ route: Route) -> Slot? {
        let list = route == .suspect ? Int(Self.suspects) : busyLanes == 0 ? 0 : busyLanes.trailingZeroBitCount
        return lists[list].head < 0 ? nil : lists[list].head
    }

    /// - Returns: whether the lane is full. The lower lanes leave room for those above.
    func isFull(for lane: PushLane) -> Bool {
        lane.fillPercent == 100 ? isFull : count >= max(1, capacity * lane.fillPercent / 100)
    }

    /// Maximum waiting suspect pushes: a blocked route must not fill the table.
    var suspectsMax: Int { max(1, capacity / 4) }
    /// The push in flight that was submitted first.
    var oldestInFlight: Slot? { flying.head < 0 ? nil : flying.head }
    /// Due time of the next delayed push.
    var nextDueNanos: UInt64? { delayed.first.map { entries[Int($0)].dueNanos } }

    subscript(slot: Slot) -> Entry {
        _read { yield entries[Int(slot)] }
        _modify { yield &entries[Int(slot)] }
    }

    /// - Returns: false for slots without a push in flight. Late events of a stream do not concern the next push in its
    ///   slot.
    func isInFlight(_ slot: Slot) -> Bool {
        slot >= 0 && Int(slot) < used && entries[Int(slot)].place == .inFlight
    }

    func isDelayed(_ slot: Slot) -> Bool { holds(slot) && entries[Int(slot)].place == .delayed }

    // The tag of a push; the slot must have one.
    func tag(_ slot: Slot) -> UInt64 { pushes[Int(slot)].tag }
    func id(_ slot: Slot) -> PushID { pushes[Int(slot)].id }
    func expiresAtMs(_ slot: Slot) -> Int64 { pushes[Int(slot)].expiresAtMs }
    func payloadBytes(_ slot: Slot) -> Int {
        let dropped = entries[Int(slot)].droppedBytes
        return dropped == 0 ? pushes[Int(slot)].payload.count : Int(dropped)
    }
    /// Its payload, headers and token must be given again before it is sent (`replace`).
    func lacksContent(_ slot: Slot) -> Bool { entries[Int(slot)].droppedBytes != 0 }
    func lane(_ slot: Slot) -> PushLane { pushes[Int(slot)].lane }
    func token(_ slot: Slot) -> DeviceToken { pushes[Int(slot)].token }
    func kind(_ slot: Slot) -> TokenBackoff.Kind { pushes[Int(slot)].headers.backoffKind }
    func isRepeatable(_ slot: Slot) -> Bool { pushes[Int(slot)].headers.isRepeatable }

    /// Gives access to a push; `slot` must have one.
    func withPush<R>(_ slot: Slot, _ body: (borrowing Push) -> R) -> R { body(pushes[Int(slot)]) }

    /// Adds a push at the end of its lane on its route; nil if the lane or route is full.
    ///
    /// - Parameter checkDueNanos: from this time its owner is asked before it is sent.
    mutating func admit(_ push: consuming Push, route: Route = .main, checkDueNanos: UInt64 = .max) -> Slot? {
        guard !isFull(for: push.lane), route == .main || suspectCount < suspectsMax else { return nil }
        let list = route == .suspect ? Self.suspects : push.lane.rawValue
        let slot: Slot
        if firstFree >= 0 {
            slot = firstFree
            firstFree = entries[Int(slot)].next
            entries[Int(slot)] = Entry()
        } else {
            if used == allocated { grow() }
            slot = Slot(used)
            used += 1
            (entries + Int(slot)).initialize(to: Entry())
        }
        (pushes + Int(slot)).initialize(to: push)
        admitted &+= 1
        entries[Int(slot)].order = admitted
        entries[Int(slot)].list = list
        entries[Int(slot)].checkDueNanos = checkDueNanos
        link(slot, .waiting, atHead: false)
        return slot
    }

    /// Releases the payload, headers and token of a waiting push that its owner can make again.
    mutating func dropContent(_ slot: Slot) {
        let push = pushes[Int(slot)]
        entries[Int(slot)].droppedBytes = UInt16(clamping: push.payload.count)
        entries[Int(slot)].checkDueNanos = 0
        let topic = push.headers.common
        let bare = bareHeaders.flatMap { $0.common === topic ? $0 : nil } ?? PushHeaders(bare: topic)
        bareHeaders = bare
        pushes[Int(slot)] = Push(
            headers: bare, payload: [], token: .none, id: push.id, tag: push.tag, expiresAtMs: push.expiresAtMs,
            lane: push.lane, isSuspect: push.isSuspect)
    }

    /// Sets a push aside until its owner has checked it.
    mutating func check(_ slot: Slot) -> PushTicket {
        unlink(slot)
        link(slot, .checking, atHead: false)
        entries[Int(slot)].checks &+= 1
        return PushTicket(order: entries[Int(slot)].order, slot: slot, check: entries[Int(slot)].checks)
    }

    /// The push of a ticket; nil for a stale ticket.
    func slot(of ticket: PushTicket) -> Slot? {
        let slot = ticket.slot
        guard holds(slot), entries[Int(slot)].place == .checking else { return nil }
        return entries[Int(slot)].order == ticket.order && entries[Int(slot)].checks == ticket.check ? slot : nil
    }

    /// From checking to waiting: before later pushes, in the order of arrival.
    mutating func putBack(_ slot: Slot, checkDueNanos: UInt64) {
        precondition(entries[Int(slot)].place == .checking, "only a push that is being checked can be put back")
        unlink(slot)
        entries[Int(slot)].checkDueNanos = checkDueNanos
        let list = Int(entries[Int(slot)].list)
        let order = entries[Int(slot)].order
        var behind: Slot = -1
        var next = lists[list].head
        // As many steps as pushes that were put back and are still waiting, which is at most the number of concurrent
        // checks.
        while next >= 0, entries[Int(next)].order < order {
            behind = next
            next = entries[Int(next)].next
        }
        guard behind >= 0, next >= 0 else { return link(slot, .waiting, atHead: behind < 0) }
        entries[Int(slot)].place = .waiting
        lists[list].insert(slot, between: behind, and: next, in: entries)
        waitingCount += 1
    }

    /// Replaces a push that is being checked. Its history, order and route remain.
    mutating func replace(_ slot: Slot, with push: consuming Push) {
        precondition(entries[Int(slot)].place == .checking, "only a push that is being checked can be replaced")
        if entries[Int(slot)].list != Self.suspects { entries[Int(slot)].list = push.lane.rawValue }
        entries[Int(slot)].droppedBytes = 0
        pushes[Int(slot)] = push
    }

    /// From waiting to in flight.
    mutating func submitted(_ slot: Slot, stream: Int32, connection: Int32, nowNanos: UInt64) {
        precondition(entries[Int(slot)].place == .waiting, "only a waiting push can be submitted")
        unlink(slot)
        link(slot, .inFlight, atHead: false)
        let at = Int(slot)
        entries[at].stream = stream
        entries[at].connection = connection
        entries[at].submittedNanos = nowNanos
        entries[at].status = 0
        entries[at].retryAfterSeconds = nil
        entries[at].isTimedOut = false
        entries[at].history.attempts &+= 1
    }

    /// Back to waiting, before all others.
    mutating func requeue(_ slot: Slot) {
        unlink(slot)
        entries[Int(slot)].isProbe = false
        link(slot, .waiting, atHead: true)
    }

    /// To the end of the waiting list, so that the others are tried first.
    mutating func requeueLast(_ slot: Slot) {
        unlink(slot)
        link(slot, .waiting, atHead: false)
    }

    /// Removed from the waiting list until `dueNanos`.
    mutating func delay(_ slot: Slot, dueNanos: UInt64) {
        unlink(slot)
        entries[Int(slot)].place = .delayed
        entries[Int(slot)].dueNanos = dueNanos
        delayed.insert(slot, in: entries)
    }

    /// Moves every due delayed push to the waiting list. Returns their number.
    mutating func wakeDue(nowNanos: UInt64) -> Int {
        var woken = 0
        while let slot = delayed.first, entries[Int(slot)].dueNanos <= nowNanos {
            requeueLast(slot)
            woken += 1
        }
        return woken
    }

    /// Removes a push and returns its tag. Its slot may be reused at once.
    mutating func remove(_ slot: Slot) -> UInt64 {
        unlink(slot)
        let tag = pushes[Int(slot)].tag
        (pushes + Int(slot)).deinitialize(count: 1)
        entries[Int(slot)].next = firstFree
        firstFree = slot
        return tag
    }

    /// Slots of pushes without a stream that have expired at `nowMs`.
    func expired(nowMs: Int64) -> [Slot] {
        var found: [Slot] = []
        for list in lists + [checked] {
            var slot = list.head
            while slot >= 0 {
                if expiresAtMs(slot) <= nowMs { found.append(slot) }
                slot = entries[Int(slot)].next
            }
        }
        for slot in delayed.slots where expiresAtMs(slot) <= nowMs { found.append(slot) }
        return found
    }

    /// - Returns: whether the slot has a push.
    func holds(_ slot: Slot) -> Bool { slot >= 0 && Int(slot) < used && entries[Int(slot)].place != .free }

    /// Slots of all pushes, in no order.
    func all() -> [Slot] {
        (0..<Slot(used)).filter { entries[Int($0)].place != .free }
    }

    // MARK: Places

    private mutating func link(_ slot: Slot, _ place: Place, atHead: Bool) {
        entries[Int(slot)].place = place
        let list = entries[Int(slot)].list
        guard place == .waiting else {
            guard place == .checking else { return flying.add(slot, in: entries, atHead: atHead) }
            if list == Self.suspects { checkedSuspects += 1 }
            return checked.add(slot, in: entries, atHead: atHead)
        }
        lists[Int(list)].add(slot, in: entries, atHead: atHead)
        waitingCount += 1
        if list != Self.suspects { busyLanes |= 1 << list }
    }

    private mutating func unlink(_ slot: Slot) {
        switch entries[Int(slot)].place {
        case .free: preconditionFailure("a free slot is in no list")
        case .delayed: delayed.remove(slot, in: entries)
        case .inFlight: flying.remove(slot, in: entries)
        case .checking:
            checked.remove(slot, in: entries)
            if entries[Int(slot)].list == Self.suspects { checkedSuspects -= 1 }
        case .waiting:
            let list = entries[Int(slot)].list
            lists[Int(list)].remove(slot, in: entries)
            waitingCount -= 1
            if list != Self.suspects, lists[Int(list)].count == 0 { busyLanes &= ~(1 << list) }
        }
        entries[Int(slot)].place = .free
    }
}
