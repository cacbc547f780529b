// SPDX-License-Identifier: Apache-2.0
/// The tree of one reply, in two blocks that later replies reuse.
///
/// hiredis' own builder allocates two heap blocks per element; a presence hash of eight fields would take 34. Nodes are
/// stored in order of arrival (a parent before its children), so nothing is reserved for a length that a server only
/// announces.
struct ReplyArena: ~Copyable {
    struct Node {
        var kind: RedisReply.Kind
        /// For an array: all children are plain values, so child n is n + 1 places further.
        var isFlat = true
        /// Elements of an array that have arrived.
        var count: Int32 = 0
        /// For a child: the index of its next sibling.
        var next: Int32 = 0
        /// For an array: the index of its last child so far.
        var lastChild: Int32 = 0
        /// The integer, or the position of the bytes.
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
    /// The limit was reached: the rest of the reply is skipped until `reset()`.
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

    /// Removes the reply. A giant one's memory is freed.
    mutating func reset() {
        nodeCount = 0
        byteCount = 0
        isOverLimit = false
        if nodeCapacity > 1 << 16 { resizeNodes(256) }
        if byteCapacity > 1 << 20 { resizeBytes(16384) }
    }

    /// Allocated bytes, used or not.
    var heldBytes: Int { nodeCapacity * MemoryLayout<Node>.stride + byteCapacity }

    /// - Returns: whether this many more bytes are within the limit. It compares the reply's content, not the allocated
    ///   memory, so the result does not depend on how the reply was split on arrival.
    func hasRoom(for count: Int) -> Bool {
        count >= 0 && count <= bytesMax - byteCount - nodeCount * MemoryLayout<Node>.stride
    }

    /// Stops keeping this reply.
    mutating func passOver() { isOverLimit = true }

    /// Adds a node under `parent` (nil for the root) and returns its index, which is invalid once the reply is over the
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

    /// Copies bytes and returns their position, which is invalid once the reply is over the limit.
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
