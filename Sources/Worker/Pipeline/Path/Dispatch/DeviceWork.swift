// SPDX-License-Identifier: Apache-2.0
import PushCore

/// One device of a decided recipient, or of a badge update: its state from its route to its end, with the data of the state.
///
/// A plain value: an event in, the consequence out; no clock, no server. Events after the end change nothing.
struct DeviceWork {
    /// Every open state may also go to `parked`, `replaced` or `ended`.
    enum Phase: Equatable {
        /// The route is chosen and nothing has begun. Goes to `merging`, `queued`, `awaitingAck` or `held`.
        case chosen
        /// The alert waits for the end of a burst's window, or for the outcome of the merged push. Goes to `queued`.
        case merging
        /// The push waits behind another one of the device. Goes to `due`.
        case queued
        /// The device is free for the push, which is not in the APNs client yet: it waits for the app's rate, a check
        /// or room. Goes to `sent` or `backingOff`.
        case due
        /// The APNs client has the push. Goes to `backingOff`.
        case sent
        /// The APNs client has the push and waits as APNs asked (429). The device's next push may go. Goes to `sent`.
        case backingOff
        /// Delivered by the long connection; the ack is due at this time (monotonic).
        case awaitingAck(dueNanos: UInt64)
        /// The user's desktop comes first.
        case held
        /// The device waits to be parked together with the rest of its recipient.
        case parked
        /// An end: a later round has another route for the device, its recipient has left for the topic, or the partition's next owner
        /// takes over.
        case replaced
        /// An end: the device's part is over, and its outcome is recorded if one is due.
        case ended

        /// Whether the push is queued or in the APNs client.
        var isPushing: Bool { self == .queued || self == .due || isWithClient }
        var isWithClient: Bool { self == .sent || self == .backingOff }
    }

    let route: Route
    private(set) var phase = Phase.chosen
    /// It takes over the device's turn from the push that it replaces.
    var inheritsTurn = false
    /// The same user bound another token to the device: the present round finds the push's new route, or it ends.
    var isRebound = false
    /// An earlier push of the device is parked, and others wait before this one: it is parked at its turn.
    var parksAtItsTurn = false
    /// A live desktop, noted if phones wait for it.
    var isDesktop = false
    /// Its device in `DeviceQueues` (`DeviceKey`); 0 before its push is queued.
    var queueKey: UInt64 = 0
    /// The connection of its delivery, or of the copy after its push.
    var connection: LiveConnection?
    /// The token of an alert that waits for its burst. Beside the phase, which so stays free of references.
    private(set) var mergingToken: BoundToken?
    /// Only `enqueue` gives it one and only `keepOnlyPush` takes its token, so that each push that is queued or sent has it.
    var push: DevicePush?

    init(route: Route) {
        self.route = route
    }

    /// Neither ended nor replaced.
    var isOpen: Bool { phase != .ended && phase != .replaced }

    var isPushing: Bool { phase.isPushing }
    var isWithClient: Bool { phase.isWithClient }

    /// The device's other pushes wait for this one.
    var occupiesDevice: Bool { phase == .due || phase == .sent }

    var isMerging: Bool { phase == .merging }
    var isHeld: Bool { phase == .held }
    var isParked: Bool { phase == .parked }
    var isQueued: Bool { phase == .queued }

    /// Nothing is in flight or queued: it waits for an ack, a desktop or the end of a burst.
    var isWaiting: Bool {
        switch phase {
        case .chosen, .awaitingAck, .held, .parked, .merging: true
        case .queued, .due, .sent, .backingOff, .replaced, .ended: false
        }
    }

    /// How the next decision may change its route.
    var standing: Progress.Standing {
        if isRebound, isOpen { return .rebound }
        return switch phase {
        case .replaced: .replaced
        case .held, .parked: .waiting
        case .queued: .queued
        case .chosen, .merging, .awaitingAck: .pending
        case .due, .sent, .backingOff, .ended: .settled
        }
    }

    /// When its ack is due; nil if none is awaited.
    var ackDueNanos: UInt64? {
        if case .awaitingAck(let dueNanos) = phase { return dueNanos }
        return nil
    }

    // MARK: Events

    mutating func merge(_ token: BoundToken) {
        if phase != .chosen { return }
        phase = .merging
        mergingToken = token
    }

    mutating func hold() { if phase == .chosen { phase = .held } }

    mutating func deliver(ackDueNanos: UInt64) { if phase == .chosen { phase = .awaitingAck(dueNanos: ackDueNanos) } }

    /// It must wait outside memory, whatever it waits for now.
    mutating func park() -> Left { phase == .parked ? .nothing : close(.parked) }

    mutating func enqueue(_ push: consuming DevicePush) {
        if phase != .chosen && !isMerging { return }
        phase = .queued
        mergingToken = nil
        self.push = push
    }

    /// The device is free for its push.
    mutating func turnCame() { if phase == .queued { phase = .due } }

    /// The APNs client accepted the push.
    mutating func send() { if phase == .due { phase = .sent } }

    /// APNs asked to leave the device alone. Returns true if the device is free for its next push.
    mutating func backOff() -> Bool {
        guard occupiesDevice else { return false }
        phase = .backingOff
        return true
    }

    /// A push that backed off is tried again. Returns true if it occupies the device from now on.
    mutating func resume() -> Bool {
        guard phase == .backingOff else { return false }
        phase = .sent
        return true
    }

    /// The consequence of a device's end.
    enum Left: Equatable {
        /// It had already ended or was replaced: nothing to do.
        case nothing
        /// It was open.
        case open
        /// It was open, and the device is now free for its next push.
        case openAndDeviceFree
        /// It was open and waited to be parked. Later events of the device may have waited for it.
        case openAndParked
    }

    mutating func end() -> Left { close(.ended) }

    /// Frees the data of an ended device, except its name and the id and number of its push.
    mutating func keepOnlyPush() {
        if isOpen { return }
        connection = nil
        mergingToken = nil
        push?.forget()
    }

    mutating func replace() -> Left { close(.replaced) }

    private mutating func close(_ last: Phase) -> Left {
        guard isOpen else { return .nothing }
        let left = occupiesDevice ? Left.openAndDeviceFree : isParked ? .openAndParked : .open
        phase = last
        return left
    }
}
