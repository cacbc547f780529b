// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// Sends a connection's output in small pieces at long intervals.
final class DripOutput {
    private let link: Link
    private let bytes: Int
    private let everyNanos: UInt64
    private var waiting: [UInt8] = []
    private var timer: LoopTimer?

    init(link: Link, loop: Loop, bytes: Int, everyMs: Int64) {
        self.link = link
        self.bytes = bytes
        everyNanos = UInt64(clamping: everyMs).multipliedReportingOverflow(by: 1_000_000).partialValue
        timer = LoopTimer(loop: loop) { [unowned self] in self.release() }
    }

    func add(_ more: UnsafeRawBufferPointer) {
        waiting.append(contentsOf: more)
        if timer?.isArmed == false { timer?.arm(afterNanos: everyNanos) }
    }

    private func release() {
        guard link.isOpen else { return }
        let piece = waiting.prefix(bytes)
        piece.withUnsafeBytes { link.write($0) }
        waiting.removeFirst(piece.count)
        if !waiting.isEmpty { timer?.arm(afterNanos: everyNanos) }
    }
}
