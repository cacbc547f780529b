/// The tree of one reply, laid out in two blocks that serve the next reply again.
///
/// hiredis' own builder makes two heap blocks per element; a presence hash of eight fields would cost 34. Nodes stand in
/// the order in which they arrive (a parent before its children), so nothing is reserved for a length that a server
/// only claims.
struct ReplyArena: ~Copyable {
    struct Node {
        var kind: RedisReply.Kind
        /// Of an array: all children are plain values, so child n stands n + 1 places further.
        var isFlat = true
        /// Elements of an array that have arrived.
        var count: Int32 = 0
        /// Of a child: where its next sibling stands.
        var next: Int32 = 0
        /// Of an array: where its last child so far stands.
        var lastChild: Int32 = 0
        /// The integer, or where the bytes begin.
        var value: Int64 = 0
        var length: Int = 0
    }

    private(set) var nodes: UnsafeMutablePointer<Node>
    private(set) var nodeCount = 0
    private var nodeCapacity = 256
    private(set) var bytes: UnsafeMutableRawPointer
    private var byteCount = 0
    private var byteCapacity = 16384
    private let bytesMax: Int
    /// The limit was reached: what comes of the reply is passed over until `reset()`.
    private(set) var isOverLimit = false

    init(bytesMax: Int) {
        self.bytesMax = min(max(bytesMax, 4096), Int(Int32.max))
        nodes = .allocate(capacity: nodeCapacity)
        bytes = .allocate(byteCount: byteCapacity, alignment: 1)
    }

    deinit {
        nodes.deallocate()
        bytes.deallocate()
    }

    /// Forgets the reply; a giant one's storage is given back.
    mutating func reset() {
        nodeCount = 0
        byteCount = 0
        isOverLimit = false
        if nodeCapacity > 1 << 16 { resizeNodes(256) }
        if byteCapacity > 1 << 20 { resizeBytes(16384) }
    }

    /// Bytes of storage, whatever of it is filled.
    var heldBytes: Int { nodeCapacity * MemoryLayout<Node>.stride + byteCapacity }

    /// Whether so many bytes more are within the limit. By what the reply holds, not by storage left from earlier ones: a
    /// reply is over the limit or not however it was cut on its way.
    func hasRoom(for count: Int) -> Bool {
        count >= 0 && count <= bytesMax - byteCount - nodeCount * MemoryLayout<Node>.stride
    }

    /// Nothing more is kept of this reply.
    mutating func passOver() { isOverLimit = true }

    /// Adds a node under `parent` (nil for the root) and returns its index, which means nothing once the reply is over the
    /// limit.
    mutating func add(_ node: Node, under parent: Int?) -> Int {
        guard !isOverLimit, hasRoom(for: MemoryLayout<Node>.stride) else {
            isOverLimit = true
            return 0
        }
        if nodeCount == nodeCapacity { resizeNodes(nodeCapacity * 2) }
        let index = nodeCount
        nodes[index] = node
        nodeCount += 1
        if let parent, parent < index {
            if nodes[parent].count > 0 { nodes[Int(nodes[parent].lastChild)].next = Int32(truncatingIfNeeded: index) }
            nodes[parent].count &+= 1
            nodes[parent].lastChild = Int32(truncatingIfNeeded: index)
            if node.kind == .array { nodes[parent].isFlat = false }
        }
        return index
    }

    /// Copies bytes in and returns where they begin, which means nothing once the reply is over the limit.
    mutating func addBytes(_ source: UnsafeRawPointer, count: Int) -> Int {
        guard !isOverLimit, hasRoom(for: count) else {
            isOverLimit = true
            return 0
        }
        if byteCount + count > byteCapacity { resizeBytes(min(bytesMax, max(byteCapacity * 2, byteCount + count))) }
        let start = byteCount
        (bytes + start).copyMemory(from: source, byteCount: count)
        byteCount += count
        return start
    }

    private mutating func resizeNodes(_ capacity: Int) {
        let larger = UnsafeMutablePointer<Node>.allocate(capacity: capacity)
        larger.initialize(from: nodes, count: nodeCount)
        nodes.deallocate()
        nodes = larger
        nodeCapacity = capacity
    }

    private mutating func resizeBytes(_ capacity: Int) {
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 1)
        larger.copyMemory(from: bytes, byteCount: byteCount)
        bytes.deallocate()
        bytes = larger
        byteCapacity = capacity
    }
}
