import EventLoop

/// What must be looked at again at a known time. Items that are due lie in `due` for `Pipeline.turn`.
final class Timers {
    let due = Tray<DueItem>()
    private let loop: Loop
    /// Called on the loop when `due` was filled.
    var didBecomeDue: () -> Void = {}
    private var queue = DueQueue<DueItem>()
    private var timer: LoopTimer?

    init(loop: Loop) {
        self.loop = loop
        timer = LoopTimer(loop: loop) { [unowned self] in takeDue() }
    }

    func cancel() { timer?.cancel() }

    /// - Parameter dueNanos: of the monotonic clock.
    func schedule(_ item: DueItem, dueNanos: UInt64) {
        let isEarliest = queue.earliest.map { dueNanos < $0 } ?? true
        queue.insert(item, dueNanos: dueNanos)
        if isEarliest { arm() }
    }

    private func arm() {
        guard let earliest = queue.earliest else { return }
        let now = loop.nowNanos
        timer?.arm(afterNanos: earliest > now ? earliest - now : 0)
    }

    private func takeDue() {
        let now = loop.nowNanos
        while let item = queue.popDue(nowNanos: now) { due.append(item) }
        arm()
        didBecomeDue()
    }
}

/// What is looked at again when its time comes.
enum DueItem {
    /// Candidates that Redis could not answer about.
    case postponedCandidates
    /// A step of a recipient beside its decision: acks to be read, or its mark.
    case retryStep(WorkRef)
    /// An ack deadline, or an early look before it.
    case acks(WorkRef)
    /// The end of a hold for a desktop.
    case hold(WorkRef)
    /// The end of a burst's window.
    case burst(BurstTable<WorkRef>.Key, window: UInt32)
    /// A device's turn whose check before sending Redis could not answer.
    case retryCheck(DeviceRef)
    /// The app's rate lets the next push go.
    case pace(AppContext)
    /// Marks of members that were gathered go.
    case memberMarks
    case retryMembers(WorkRef)
    case retryOriginal(WorkRef)
    case retryParked(WorkRef)
    case retryChange(WorkRef)
    /// A lowered badge has waited for others of its user, or is asked for again.
    case badgeUpdate(WorkRef)
}
