// SPDX-License-Identifier: Apache-2.0
import CostCounting
import EventLoop

/// A link's end of a connection.
final class LinkEnd: VirtualStream {
    private let connection: Connection
    private let side: Connection.Side
    private weak var seat: LoopSeat?
    weak var link: Link?
    private var isClosed = false

    init(_ connection: Connection, _ side: Connection.Side, _ seat: LoopSeat?) {
        self.connection = connection
        self.side = side
        self.seat = seat
        seat?.add(self)
    }

    func attach(_ link: Link) { self.link = link }

    func wake() { if !isClosed { seat?.wake() } }

    func connected(_ fault: LinkFault?) {
        guard !isClosed else { return }
        seat?.arrive { [self] in if !isClosed { link?.didConnect(self, fault) } }
    }

    var isWaiting: Bool { link?.isWaitingForRoom ?? false }

    var isReady: Bool {
        guard !isClosed, let link else { return false }
        return link.isReading && connection.isReadable(at: side)
            || link.isWaitingForRoom && connection.hasRoom(from: side)
    }

    func comeUp() {
        guard !isClosed, let link else { return }
        if link.isWaitingForRoom, connection.hasRoom(from: side) { link.comeUpToWrite() }
        guard !isClosed else { return }
        if link.isReading, connection.isReadable(at: side) { link.comeUpToRead() }
    }

    func read(into room: UnsafeMutableRawBufferPointer) -> VirtualStep {
        Counting.outside { connection.read(at: side, into: room) }
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> VirtualStep { Counting.outside { take(bytes) } }

    private func take(_ bytes: UnsafeRawBufferPointer) -> VirtualStep {
        guard seat?.process.takeEffect() ?? true else { return .bytes(bytes.count) }
        if let fault = connection.isBroken(from: side) { return .ended(fault) }
        let count = connection.write(bytes, from: side)
        return count > 0 ? .bytes(count) : .blocked
    }

    func close(isReset: Bool) {
        guard !isClosed else { return }
        isClosed = true
        seat?.remove(self)
        connection.close(side, isReset: isReset)
    }

    /// The kernel closes it.
    func processEnded() {
        guard !isClosed else { return }
        isClosed = true
        connection.close(side, isReset: connection.isReadable(at: side))
    }
}
