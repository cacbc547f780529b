// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

@testable import Worker

/// What one piece of work takes of a worker's memory: all that are in hand at once hold it, and each push touches it.
struct WorkSizeTests {
    private final class Known {
        var word: UInt64 = 0
    }

    @Test func workInProgressFitsItsSizes() throws {
        #expect(Self.bytes(of: Known.self) == 16 + 8, "read from the right place")
        let sizes = [
            ("EventJob", Self.bytes(of: EventJob.self)), ("RecipientJob", Self.bytes(of: RecipientJob.self)),
            ("Candidate", Self.bytes(of: Candidate.self)), ("DeviceWork", 32 + MemoryLayout<DeviceWork>.stride),
        ]
        for (name, size) in sizes { #expect(try Double(size) <= Limits.limit("bytes: " + name), "\(name): \(size)") }
    }

    /// Of an instance, as its class says behind kind, superclass, flags and address point (Swift's ABI, `TypeMetadata.rst`).
    private static func bytes(of type: AnyClass) -> Int {
        Int(unsafeBitCast(type, to: UnsafeRawPointer.self).load(fromByteOffset: 24, as: UInt32.self))
    }
}
