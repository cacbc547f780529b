// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// How long the orderly end of a process may take; readable from any thread.
public final class DrainTime: Sendable {
    private let milliseconds: Atomic<Int>

    init(seconds: Double) { milliseconds = Atomic(Int(seconds * 1000)) }

    public var seconds: Double { Double(milliseconds.load(ordering: .relaxed)) / 1000 }

    func set(seconds: Double) { milliseconds.store(Int(seconds * 1000), ordering: .relaxed) }
}
