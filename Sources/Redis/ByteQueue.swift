// SPDX-License-Identifier: Apache-2.0
/// A FIFO queue of bytes in one growing block.
struct ByteQueue: ~Copyable {
    private var bytes: [UInt8] = []
    private var head = 0

    var count: Int { bytes.count - head }

    mutating func append(_ more: UnsafeRawBufferPointer) { bytes.append(contentsOf: more) }

    /// Gives access to the first `length` bytes during `body`.
    func withPrefix<Result>(_ length: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        bytes.withUnsafeBytes { bytes in
            body(UnsafeRawBufferPointer(rebasing: bytes[head..<min(bytes.count, head + max(0, length))]))
        }
    }

    mutating func drop(_ length: Int) {
        head = min(bytes.count, head + max(0, length))
        if head == bytes.count {
            // A large block is freed; an ordinary one is kept.
            bytes.removeAll(keepingCapacity: bytes.capacity <= 1 << 20)
            head = 0
        } else if head > 65536, head > bytes.count / 2 {
            bytes.removeFirst(head)
            head = 0
        }
    }
}
