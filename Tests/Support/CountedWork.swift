// SPDX-License-Identifier: Apache-2.0
import CCount
import Glibc

/// What a piece of work cost, counted and not timed.
public struct CountedWork: Sendable {
    /// Calls of the allocator, and the bytes that they asked for; 0 under a sanitizer, which has its own.
    public var allocations: UInt64
    public var bytes: UInt64
    /// The bytes that it still holds of these.
    public var heldBytes: Int64
    /// In user space; nil where the machine has no counter (most virtual ones).
    public var instructions: UInt64?

    /// Runs `body` on this thread.
    public static func of(_ body: () throws -> Void) rethrows -> CountedWork {
        let counter = ccount_open_instructions()
        defer { if counter >= 0 { close(counter) } }
        let before = ccount_thread_memory()
        let start = counter >= 0 ? ccount_read_instructions(counter) : 0
        try body()
        let instructions = counter >= 0 ? ccount_read_instructions(counter) - start : nil
        let after = ccount_thread_memory()
        return CountedWork(
            allocations: after.allocations - before.allocations, bytes: after.bytes - before.bytes,
            heldBytes: after.held - before.held, instructions: instructions)
    }
}
