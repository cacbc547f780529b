/// The open streams of a session: places that are used again, so that an open stream costs no allocation.
struct StreamTable {
    /// One open stream.
    struct Slot {
        var id: Int32 = 0
        var tag: UInt64 = 0
        /// The body that this end sends; emptied when the last byte is taken.
        var body: [UInt8] = []
        var sent = 0
        /// The final header list came; further ones are trailers.
        var hasHeaders = false
        /// Its end is recorded; nghttp2 may report a stream that was never sent twice.
        var hasEnded = false
    }

    private(set) var slots: [Slot] = []
    private var free: [Int] = []

    /// Streams now open.
    var count: Int { slots.count - free.count }

    mutating func insert(id: Int32, tag: UInt64, body: [UInt8]) -> Int {
        if let index = free.popLast() {
            slots[index] = Slot(id: id, tag: tag, body: body)
            return index
        }
        slots.append(Slot(id: id, tag: tag, body: body))
        return slots.count - 1
    }

    mutating func remove(_ index: Int) {
        slots[index] = Slot()
        free.append(index)
    }

    /// Whether `index` is the place of stream `id`.
    @inline(__always) func holds(_ index: Int, id: Int32) -> Bool {
        index >= 0 && index < slots.count && slots[index].id == id && id != 0
    }

    /// The place of stream `id` by search: only for streams that nghttp2 no longer knows.
    func search(id: Int32) -> Int? { id == 0 ? nil : slots.firstIndex { $0.id == id } }

    @inline(__always) subscript(_ index: Int) -> Slot {
        get { slots[index] }
        _modify { yield &slots[index] }
    }
}
