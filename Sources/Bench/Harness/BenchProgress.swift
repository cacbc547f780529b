// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Processes

/// A minute without any change of the workers' counters is a fault.
struct BenchProgress {
    private var last = -1
    private var lastChange = Loop.monotonicNanos()

    mutating func note(_ sum: Int) throws(SetupFault) {
        let now = Loop.monotonicNanos()
        if sum != last { (last, lastChange) = (sum, now) }
        guard now - lastChange <= 60_000_000_000 else { throw SetupFault("no progress for a minute, at \(sum)") }
    }
}
