// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Synchronization

/// The wall clock that a worker goes by. A test may move it.
public final class WallClock: Sendable {
    private let shiftMs = Atomic<Int64>(0)

    public init() {}

    /// Unix ms.
    func nowMs(on loop: Loop) -> Int64 { loop.wallMs &+ shiftMs.load(ordering: .relaxed) }

    /// Moves the clock from now on, as an operator's hand would.
    public func move(byMs change: Int64) { shiftMs.add(change, ordering: .relaxed) }
}
