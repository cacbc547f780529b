// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// Delays a connection's output by a round trip, so that a local client sees a distant server.
final class OutputLine {
    private struct Piece {
        var dueNanos: UInt64
        var bytes: [UInt8]
    }

    private let loop: Loop
    private let delayNanos: UInt64
    private let write: (UnsafeRawBufferPointer) -> Void
    private var waiting: [Piece] = []
    private var timer: LoopTimer?

    init(loop: Loop, delayMs: Int64, write: @escaping (UnsafeRawBufferPointer) -> Void) {
        self.loop = loop
        self.write = write
        delayNanos = UInt64(clamping: delayMs) &* 1_000_000
        timer = LoopTimer(loop: loop) { [unowned self] in self.release() }
    }

    func add(_ more: UnsafeRawBufferPointer) {
        let due = loop.nowNanos &+ delayNanos
        // One piece per turn of the loop.
        if let last = waiting.last, last.dueNanos == due {
            waiting[waiting.count - 1].bytes.append(contentsOf: more)
        } else {
            waiting.append(Piece(dueNanos: due, bytes: Array(more)))
        }
        if timer?.isArmed == false { timer?.arm(afterNanos: delayNanos) }
    }

    private func release() {
        let now = loop.nowNanos
        let ready = waiting.prefix { $0.dueNanos <= now }
        waiting.removeFirst(ready.count)
        for piece in ready { piece.bytes.withUnsafeBytes { write($0) } }
        if let next = waiting.first { timer?.arm(afterNanos: next.dueNanos &- now) }
    }
}
