/// Bytes that leave in the order in which they came, in one growing block.
struct ByteQueue: ~Copyable {
    private var bytes: [UInt8] = []
    private var head = 0

    var count: Int { bytes.count - head }

    mutating func append(_ more: UnsafeRawBufferPointer) { bytes.append(contentsOf: more) }

    /// The first `length` bytes, for the time of `body`.
    func withPrefix<Result>(_ length: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        bytes.withUnsafeBytes { bytes in
            body(UnsafeRawBufferPointer(rebasing: bytes[head..<min(bytes.count, head + max(0, length))]))
        }
    }

    mutating func drop(_ length: Int) {
        head = min(bytes.count, head + max(0, length))
        if head == bytes.count {
            // A burst's block is given back; an ordinary one is kept.
            bytes.removeAll(keepingCapacity: bytes.capacity <= 1 << 20)
            head = 0
        } else if head > 65536, head > bytes.count / 2 {
            bytes.removeFirst(head)
            head = 0
        }
    }
}
