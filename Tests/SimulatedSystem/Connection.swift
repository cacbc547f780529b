// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// One connection of the network: two ends, and the bytes under way in each direction, in order.
final class Connection {
    enum Side {
        case client, server

        var other: Side { self == .client ? .server : .client }
    }

    /// What is at an end.
    enum End {
        case none
        case link(LinkEnd)
        case model(ModelPeer)
    }

    let number: Int
    let path: NetworkPath
    let clientHost: String
    unowned let network: SimulatedNetwork
    var client = End.none
    var server = End.none
    private var toServer = Direction()
    private var toClient = Direction()
    /// Both ends are closed.
    private(set) var isOver = false
    private var closed: (client: Bool, server: Bool) = (false, false)

    /// Bytes on their way to one end.
    struct Direction {
        var bytes: [UInt8] = []
        /// Of `bytes`, those that have arrived and those that were read.
        var arrived = 0
        var read = 0
        var lastArrivalNanos: UInt64 = 0
        /// How it ends, once all before was read.
        var end: LinkFault?
        var hasEndArrived = false
        /// All bytes so far.
        var written = 0

        /// Its end has arrived, and all before it: events of one time have no order.
        var hasEnded: Bool { hasEndArrived && arrived == bytes.count }
        var unread: Int { bytes.count - read }
    }

    init(number: Int, path: NetworkPath, clientHost: String, network: SimulatedNetwork) {
        self.number = number
        self.path = path
        self.clientHost = clientHost
        self.network = network
    }

    private var system: SimulatedSystem { network.system }

    private func withDirection<Result>(to side: Side, _ body: (inout Direction) -> Result) -> Result {
        side == .server ? body(&toServer) : body(&toClient)
    }

    private func end(_ side: Side) -> End { side == .client ? client : server }

    // MARK: Bytes

    /// The client learns whether it is connected.
    func answer(_ fault: LinkFault?) {
        guard case .link(let end) = client else { return }
        system.after(nanos: path.delay(system)) { [weak end] in end?.connected(fault) }
    }

    /// Takes what fits; 0 if nothing does.
    func write(_ bytes: UnsafeRawBufferPointer, from side: Side) -> Int {
        let room = path.windowBytes - withDirection(to: side.other) { $0.unread }
        let count = min(max(0, room), bytes.count)
        guard count > 0 else { return 0 }
        let taken = UnsafeRawBufferPointer(rebasing: bytes[..<count])
        system.note(taken)
        let arrivalNanos = arrival(to: side.other)
        let total = withDirection(to: side.other) { direction in
            direction.bytes.append(contentsOf: taken)
            direction.written += count
            return direction.written
        }
        carry(to: side.other, upTo: total, atNanos: arrivalNanos)
        return count
    }

    private func arrival(to side: Side) -> UInt64 {
        let nanos = system.nowNanos &+ path.delay(system)
        return withDirection(to: side) { direction in
            direction.lastArrivalNanos = max(direction.lastArrivalNanos, nanos)
            return direction.lastArrivalNanos
        }
    }

    /// Bytes before the one with that number arrive; held ones wait.
    private func carry(to side: Side, upTo total: Int, atNanos: UInt64) {
        system.at(atNanos) { [weak self] in
            guard let self, !isOver else { return }
            if path.heldUntilNanos > system.nowNanos {
                guard path.heldUntilNanos != .max else { return }
                return carry(to: side, upTo: total, atNanos: path.heldUntilNanos)
            }
            withDirection(to: side) { direction in
                let index = direction.bytes.count - (direction.written - total)
                direction.arrived = max(direction.arrived, index)
            }
            tell(side)
        }
    }

    private func carryEnd(to side: Side, atNanos: UInt64) {
        system.at(atNanos) { [weak self] in
            guard let self, !isOver else { return }
            if path.heldUntilNanos > system.nowNanos {
                guard path.heldUntilNanos != .max else { return }
                return carryEnd(to: side, atNanos: path.heldUntilNanos)
            }
            withDirection(to: side) { $0.hasEndArrived = true }
            tell(side)
        }
    }

    private func tell(_ side: Side) {
        switch end(side) {
        case .none: break
        case .link(let end): end.wake()
        case .model(let peer): peer.comeUp()
        }
    }

    func isReadable(at side: Side) -> Bool {
        withDirection(to: side) { $0.arrived > $0.read || $0.hasEnded }
    }

    func hasRoom(from side: Side) -> Bool {
        withDirection(to: side.other) { $0.unread < path.windowBytes || $0.end != nil }
    }

    func read(at side: Side, into room: UnsafeMutableRawBufferPointer) -> VirtualStep {
        let system = system
        let isShort = system.chance(perMille: path.shortReadsPerMille)
        let step: VirtualStep = withDirection(to: side) { direction in
            let available = direction.arrived - direction.read
            guard available > 0 else {
                if direction.hasEnded, let end = direction.end { return .ended(end) }
                return .blocked
            }
            var count = min(available, room.count)
            if isShort { count = 1 + system.choice(count) }
            direction.bytes.withUnsafeBytes { bytes in
                room.copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: bytes[direction.read..<direction.read + count]))
            }
            direction.read += count
            if direction.read > 64 * 1024 || direction.read == direction.bytes.count {
                direction.bytes.removeFirst(direction.read)
                direction.arrived -= direction.read
                direction.read = 0
            }
            return .bytes(count)
        }
        if case .bytes = step { tellOfRoom(side.other) }
        return step
    }

    /// The other end may wait for room.
    private func tellOfRoom(_ side: Side) {
        switch end(side) {
        case .link(let end) where end.isWaiting:
            system.after(nanos: path.delay(system)) { [weak end] in end?.wake() }
        case .model(let peer) where peer.isWaiting:
            system.after(nanos: path.delay(system)) { [weak peer] in peer?.comeUp() }
        case .link, .model, .none: break
        }
    }

    // MARK: The end

    /// One end has closed. The other gets what is under way, or with a reset loses it.
    func close(_ side: Side, isReset: Bool) {
        if side == .client { closed.client = true } else { closed.server = true }
        let address = path.address
        withDirection(to: side.other) { direction in
            guard direction.end == nil else { return }
            direction.end =
                isReset ? LinkFault(.reset, "\(address): reset") : LinkFault(.closedByPeer, "\(address): closed")
            if isReset, direction.bytes.count > direction.arrived {
                direction.bytes.removeLast(direction.bytes.count - direction.arrived)
            }
        }
        carryEnd(to: side.other, atNanos: arrival(to: side.other))
        if closed.client, closed.server { finish() }
        if case .none = end(side.other) { finish() }
    }

    /// The network breaks it: each end loses a part of what is under way to it, from any byte on.
    func cut() {
        for side in [Side.client, .server] {
            let address = path.address
            let system = system
            withDirection(to: side) { direction in
                guard direction.end == nil else { return }
                let under = direction.bytes.count - direction.arrived
                if under > 0 { direction.bytes.removeLast(system.choice(under + 1)) }
                direction.arrived = direction.bytes.count
                direction.end = LinkFault(.reset, "\(address): reset")
                direction.hasEndArrived = true
            }
            tell(side)
        }
    }

    /// No more is written in that direction, since its connection broke.
    func isBroken(from side: Side) -> LinkFault? {
        withDirection(to: side) { $0.hasEndArrived && $0.end?.reason == .reset ? $0.end : nil }
    }

    /// Nothing moves any more.
    func finish() {
        guard !isOver else { return }
        isOver = true
        network.remove(self)
        client = .none
        server = .none
    }
}
