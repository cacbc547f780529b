// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Bytes to be sent: one contiguous block, filled at its end and consumed from its front.
///
/// Contiguous, so that TLS can cut full 16 KB records from it. When it becomes empty, it frees a large block.
struct OutputBuffer: ~Copyable {
    private static let firstCapacity = 32 * 1024
    /// A busy turn fills half a megabyte. A block that is freed each time would grow and be copied each time.
    private static let keptCapacity = 1024 * 1024

    private var block: UnsafeMutableRawPointer?
    private var capacity = 0
    private var head = 0
    private var tail = 0

    deinit { free(block) }

    var count: Int { tail &- head }

    var bytes: UnsafeRawBufferPointer {
        guard let block, tail > head else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(start: block + head, count: tail &- head)
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        if capacity &- tail < bytes.count { makeRoom(bytes.count) }
        guard let block else { return }
        memcpy(block + tail, source, bytes.count)
        tail &+= bytes.count
    }

    mutating func drop(_ sent: Int) {
        head &+= sent
        guard head >= tail else { return }
        head = 0
        tail = 0
        if capacity > Self.keptCapacity { release() }
    }

    mutating func release() {
        free(block)
        block = nil
        capacity = 0
        head = 0
        tail = 0
    }

    private mutating func makeRoom(_ needed: Int) {
        let used = count
        // Moving is cheap only while less than half is used. Otherwise the block grows, so each byte moves O(1) times.
        if let block, used &+ needed <= capacity, used <= capacity / 2 {
            memmove(block, block + head, used)
        } else {
            var wanted = max(Self.firstCapacity, capacity)
            while wanted < used + needed { wanted *= 2 }
            let larger = UnsafeMutableRawPointer.allocateC(wanted)
            if let block { memcpy(larger, block + head, used) }
            free(block)
            block = larger
            capacity = wanted
        }
        head = 0
        tail = used
    }
}

extension UnsafeMutableRawPointer {
    /// malloc that never returns nil: like Swift's own allocation, it traps when memory is exhausted.
    fileprivate static func allocateC(_ size: Int) -> UnsafeMutableRawPointer {
        guard let block = malloc(size) else { preconditionFailure("out of memory: \(size) bytes of output") }
        return block
    }
}
