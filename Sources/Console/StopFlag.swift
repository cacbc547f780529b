// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc
import Synchronization

/// Set when the user requests an end. For loops that block their thread and check between two steps.
public final class StopFlag: Sendable {
    private let flag = Atomic<Bool>(false)

    /// The first SIGINT or SIGTERM sets it. A second one ends the process.
    public init(_ signals: EndSignals?) {
        signals?.onFirst { [self] in flag.store(true, ordering: .releasing) }
    }

    public var isSet: Bool { flag.load(ordering: .acquiring) }

    /// Pauses between two polls.
    public static func pause(milliseconds: UInt32) { usleep(min(milliseconds, 900) * 1000) }

    /// Sleeps until `nanos` of the monotonic clock, or until the flag is set.
    public func sleep(until nanos: UInt64) {
        while !isSet {
            let now = Loop.monotonicNanos()
            guard now < nanos else { return }
            usleep(UInt32(min(nanos - now, 50_000_000) / 1000) + 1)
        }
    }
}
