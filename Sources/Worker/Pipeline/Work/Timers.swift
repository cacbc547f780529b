// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Queues

/// Items that must be checked again at a known time. Due items are in `due` for `Pipeline.turn`.
final class Timers {
    let due = Tray<DueItem>()
    private let loop: Loop
    /// Called on the loop when `due` was filled.
    var didBecomeDue: () -> Void = {}
    private var queue = DueQueue<UInt64, DueItem>()
    private var timer: LoopTimer?

    init(loop: Loop) {
        self.loop = loop
        timer = LoopTimer(loop: loop) { [unowned self] in takeDue() }
    }

    func cancel() { timer?.cancel() }

    /// - Parameter dueNanos: monotonic.
    func schedule(_ item: DueItem, dueNanos: UInt64) {
        let isEarliest = queue.earliest.map { dueNanos < $0 } ?? true
        queue.insert(item, due: dueNanos)
        if isEarliest { arm() }
    }

    private func arm() {
        guard let earliest = queue.earliest else { return }
        let now = loop.nowNanos
        timer?.arm(afterNanos: earliest > now ? earliest - now : 0)
    }

    private func takeDue() {
        let now = loop.nowNanos
        while let item = queue.popDue(now) { due.append(item) }
        arm()
        didBecomeDue()
    }
}

/// An item to check at its time.
enum DueItem {
    /// Candidates without an answer from Redis.
    case postponedCandidates
    /// A step of a recipient besides its decision: acks to be read, or its mark.
    case retryStep(WorkRef)
    /// An ack deadline, or an early check before it.
    case acks(WorkRef)
    /// The end of a hold for a desktop.
    case hold(WorkRef)
    /// The end of a burst's window.
    case burst(BurstTable<WorkRef>.Key, window: UInt32)
    /// A device's turn without an answer of Redis to the check before sending.
    case retryCheck(DeviceRef)
    /// The app's rate allows the next push.
    case pace(AppContext)
    /// Collected marks of members must be sent.
    case memberMarks
    /// A read of an event before its recipients begin.
    case retryRead(WorkRef)
    case retryChange(WorkRef)
    /// A lowered badge has waited for others of its user, or is read again.
    case badgeUpdate(WorkRef)
}
