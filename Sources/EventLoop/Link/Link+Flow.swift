// SPDX-License-Identifier: Apache-2.0
import CLibevent
import Glibc

// Input and output of an open stream.
extension Link {
    /// Maximum bytes sent in one turn, so that a fast peer cannot occupy the loop.
    private static var writeBudget: Int { 1024 * 1024 }
    /// The largest TLS record's content (RFC 8446 section 5.1). With less room a call is not worth its cost.
    private static var recordBytes: Int { 16 * 1024 }

    func readable() {
        _ = loop.nowNanos
        loop.stageClock?.enter(clockStage)
        switch stage {
        case .tunnelling: tunnelReadable()
        case .handshaking: handshake()
        case .open: receive()
        case .idle, .resolving, .connecting, .closed: break
        }
    }

    func writable() {
        _ = loop.nowNanos
        loop.stageClock?.enter(clockStage)
        isWriteBlocked = false
        switch stage {
        case .connecting: connectFinished()
        case .handshaking: handshake()
        case .open:
            flush()
            // TLS may have had to write before it could continue to read.
            if session != nil, stage == .open { scheduleRead() }
        case .idle, .resolving, .tunnelling, .closed: break
        }
    }

    func resumeRead() {
        isReadScheduled = false
        loop.stageClock?.enter(clockStage)
        if stage == .open, !isReadPaused { receive() }
    }

    /// Reads the available bytes, up to the size of the loop's scratch space, and passes them on in one piece.
    private func receive() {
        var filled = 0
        var hasMore = false
        var end: LinkFault?
        if let session {
            fill: while true {
                guard loop.scratch.count - filled >= Self.recordBytes else {
                    hasMore = true
                    break
                }
                switch session.read(into: UnsafeMutableRawBufferPointer(rebasing: loop.scratch[filled...])) {
                case .bytes(let count): filled += count
                case .wantsRead: break fill
                case .wantsWrite:
                    if let writeEvent { event_add(writeEvent, nil) }
                    break fill
                case .ended(let fault):
                    end = fault
                    break fill
                }
            }
        } else if let stream {
            switch stream.read(into: loop.scratch) {
            case .bytes(let count): filled = count
            case .blocked: break
            case .ended(let fault): end = fault
            }
        } else {
            let count = recv(fd, loop.scratch.baseAddress, loop.scratch.count, 0)
            if count > 0 {
                filled = count
            } else if count == 0 {
                end = LinkFault(.closedByPeer, "\(endpoint): the peer closed the stream")
            } else if errno != EAGAIN, errno != EINTR {
                end = LinkFault(errno: errno, "\(endpoint): read")
            }
        }
        if filled > 0 { delegate?.link(self, didReceive: UnsafeRawBufferPointer(rebasing: loop.scratch[..<filled])) }
        guard stage == .open else { return }
        // A paused link meets its end again when it resumes.
        if let end, !isReadPaused { return fail(end) }
        if hasMore, !isReadPaused { scheduleRead() }
        // TLS may have had to read before it could continue to write.
        if output.count > 0 { scheduleFlush() }
    }

    /// Sends the collected output, at the end of a turn or when the kernel has room again.
    func flush() {
        isFlushScheduled = false
        loop.stageClock?.enter(clockStage)
        guard stage == .open, !isWriteBlocked else { return }
        if let fault = send() { return fail(fault) }
        if isWriteBlocked {
            if let writeEvent { event_add(writeEvent, nil) }
        } else if output.count > 0 {
            scheduleFlush()
        }
        guard isAboveLowWater, output.count <= lowWaterBytes else { return }
        isAboveLowWater = false
        delegate?.linkDidDrain(self)
    }

    /// Writes until the output is empty, the kernel has no room (`isWriteBlocked`), or the turn's budget is used up.
    func send() -> LinkFault? {
        var budget = Self.writeBudget
        while output.count > 0, budget > 0 {
            let sent: Int
            if let session {
                switch session.write(output.bytes) {
                case .bytes(let count): sent = count
                case .wantsWrite:
                    isWriteBlocked = true
                    return nil
                case .wantsRead:
                    // Happens only during a key change. The next read continues it.
                    return nil
                case .ended(let fault): return fault
                }
            } else if let stream {
                switch stream.write(output.bytes) {
                case .bytes(let count): sent = count
                case .blocked:
                    isWriteBlocked = true
                    return nil
                case .ended(let fault): return fault
                }
            } else {
                let bytes = output.bytes
                let count = Glibc.send(fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
                if count < 0, errno == EINTR { continue }
                if count < 0, errno == EAGAIN {
                    isWriteBlocked = true
                    return nil
                }
                guard count >= 0 else { return LinkFault(errno: errno, "\(endpoint): write") }
                sent = count
            }
            output.drop(sent)
            budget -= sent
        }
        return nil
    }
}
