// SPDX-License-Identifier: Apache-2.0
/// The open streams of a session in reused slots, so that opening a stream allocates nothing.
struct StreamTable {
    /// One open stream.
    struct Slot {
        var id: Int32 = 0
        var tag: UInt64 = 0
        /// The body that this end sends; emptied after its last byte.
        var body: [UInt8] = []
        var sent = 0
        /// The final header list was received. Further ones are trailers.
        var hasHeaders = false
        /// Its end is recorded. nghttp2 may report a stream twice if it was never sent.
        var hasEnded = false
    }

    private(set) var slots: [Slot] = []
    private var free: [Int] = []

    /// Open streams.
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

    /// Returns whether `index` is the slot of stream `id`.
    @inline(__always) func holds(_ index: Int, id: Int32) -> Bool {
        index >= 0 && index < slots.count && slots[index].id == id && id != 0
    }

    /// Searches the slot of stream `id`; only for streams that nghttp2 no longer knows.
    func search(id: Int32) -> Int? { id == 0 ? nil : slots.firstIndex { $0.id == id } }

    @inline(__always) subscript(_ index: Int) -> Slot {
        get { slots[index] }
        _modify { yield &slots[index] }
    }
}
