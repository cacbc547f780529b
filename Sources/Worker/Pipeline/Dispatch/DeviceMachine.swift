/// Where one device of a decided recipient stands, from its route to its end.
///
/// A plain value: an event in, what follows out; no clock, no server. Whatever comes after the end changes nothing.
struct DeviceMachine: Equatable {
    enum Phase: Equatable {
        /// Its route is chosen and nothing was begun.
        case chosen
        /// Its alert waits for the end of a burst's window, or for the outcome of the push that tells of it.
        case merging
        /// Its push waits behind another one of the device.
        case queued
        /// The device is free for its push, which is not with the APNs client: the app's rate, a check or room is waited for.
        case due
        /// The APNs client has the push.
        case sent
        /// The APNs client has the push and waits as APNs asked (429); the device's next push may go meanwhile.
        case backingOff
        /// Delivered by the long connection; its ack is due by then (monotonic).
        case awaitingAck(dueNanos: UInt64)
        /// The user's desktop comes first.
        case held
        /// It waits to be parked, with all else of its recipient.
        case parked
        /// A later round of the decision has another route for the device, or the partition's next owner takes over.
        case replaced
        case ended
    }

    private(set) var phase = Phase.chosen

    /// Neither ended nor replaced.
    var isOpen: Bool { phase != .ended && phase != .replaced }

    /// A push of it is queued or with the APNs client.
    var isPushing: Bool { phase == .queued || phase == .due || isWithClient }

    var isWithClient: Bool { phase == .sent || phase == .backingOff }

    /// The device's other pushes wait for this one.
    var occupiesDevice: Bool { phase == .due || phase == .sent }

    var isMerging: Bool { phase == .merging }
    var isHeld: Bool { phase == .held }
    var isParked: Bool { phase == .parked }
    var isQueued: Bool { phase == .queued }

    /// Nothing is out and nothing is queued: an ack, a desktop or the end of a burst is waited for.
    var isWaiting: Bool {
        switch phase {
        case .chosen, .awaitingAck, .held, .parked, .merging: true
        case .queued, .due, .sent, .backingOff, .replaced, .ended: false
        }
    }

    /// When its ack is due; nil: none is awaited.
    var ackDueNanos: UInt64? {
        if case .awaitingAck(let dueNanos) = phase { return dueNanos }
        return nil
    }

    // MARK: Events

    mutating func merge() { if phase == .chosen { phase = .merging } }

    mutating func hold() { if phase == .chosen { phase = .held } }

    mutating func deliver(ackDueNanos: UInt64) { if phase == .chosen { phase = .awaitingAck(dueNanos: ackDueNanos) } }

    /// It is to wait outside of memory, wherever it waits now.
    mutating func park() -> Left { phase == .parked ? .nothing : close(.parked) }

    mutating func enqueue() { if phase == .chosen || phase == .merging { phase = .queued } }

    /// The device is free for its push.
    mutating func turnCame() { if phase == .queued { phase = .due } }

    /// The APNs client took the push.
    mutating func send() { if phase == .due { phase = .sent } }

    /// APNs wants the device left alone. True: the device is free for its next push.
    mutating func backOff() -> Bool {
        guard occupiesDevice else { return false }
        phase = .backingOff
        return true
    }

    /// A push that backed off is tried again. True: it occupies the device from now on.
    mutating func resume() -> Bool {
        guard phase == .backingOff else { return false }
        phase = .sent
        return true
    }

    /// What the end of a device leaves behind.
    enum Left: Equatable {
        /// It had ended, or was replaced, before: nothing is to be done.
        case nothing
        /// It was open.
        case open
        /// It was open, and the device is free for its next push now.
        case openAndDeviceFree
        /// It was open and waited to be parked: later ones of the device may have waited for it.
        case openAndParked
    }

    mutating func end() -> Left { close(.ended) }

    mutating func replace() -> Left { close(.replaced) }

    private mutating func close(_ last: Phase) -> Left {
        guard isOpen else { return .nothing }
        let left = occupiesDevice ? Left.openAndDeviceFree : isParked ? .openAndParked : .open
        phase = last
        return left
    }
}
