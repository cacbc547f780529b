// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Worker

/// What one piece of work takes of a worker's memory: all that are in hand at once hold it, and each push touches it.
struct WorkSizeTests {
    private final class Known {
        var word: UInt64 = 0
    }

    /// Sizes that jemalloc gives out whole: one byte more would take 64 or 128.
    @Test func workInProgressFitsItsSizes() {
        #expect(Self.bytes(of: Known.self) == 16 + 8, "read from the right place")
        #expect(Self.bytes(of: EventJob.self) <= 384)
        #expect(Self.bytes(of: RecipientJob.self) <= 320)
        #expect(Self.bytes(of: Candidate.self) <= 448)
        // An array's own head is 32.
        #expect(32 + MemoryLayout<DeviceWork>.stride <= 224)
    }

    /// Of an instance, as its class says behind kind, superclass, flags and address point (Swift's ABI, `TypeMetadata.rst`).
    private static func bytes(of type: AnyClass) -> Int {
        Int(unsafeBitCast(type, to: UnsafeRawPointer.self).load(fromByteOffset: 24, as: UInt32.self))
    }
}
