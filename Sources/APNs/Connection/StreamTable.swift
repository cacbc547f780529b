/// Which push a stream of one connection carries: open addressing over stream ids.
///
/// Client stream ids are odd and rise, so half the id is its own hash and a burst fills the table in order. A stream
/// that never ends costs one cell however many come after it.
struct StreamTable: ~Copyable {
    private struct Cell {
        var stream: Int32 = 0
        var slot: Int32 = 0
    }

    private var cells: [Cell]
    private var mask: Int
    private(set) var count = 0

    init() {
        cells = Array(repeating: Cell(), count: 64)
        mask = 63
    }

    private func home(_ stream: Int32) -> Int { Int(stream >> 1) & mask }

    func slot(of stream: Int32) -> Int32? {
        var at = home(stream)
        while cells[at].stream != 0 {
            if cells[at].stream == stream { return cells[at].slot }
            at = (at + 1) & mask
        }
        return nil
    }

    /// `stream` must be positive and not in the table.
    mutating func insert(_ stream: Int32, slot: Int32) {
        if (count + 1) * 2 > cells.count { grow() }
        place(Cell(stream: stream, slot: slot))
        count += 1
    }

    /// Takes a stream out and names its push; nil when it was not there (a late event).
    mutating func remove(_ stream: Int32) -> Int32? {
        guard stream > 0 else { return nil }
        var at = home(stream)
        while cells[at].stream != stream {
            if cells[at].stream == 0 { return nil }
            at = (at + 1) & mask
        }
        let slot = cells[at].slot
        close(at)
        count -= 1
        return slot
    }

    /// Takes everything out.
    mutating func removeAll() -> [Int32] {
        let slots = cells.lazy.filter { $0.stream != 0 }.sorted { $0.stream < $1.stream }.map { $0.slot }
        for at in cells.indices { cells[at] = Cell() }
        count = 0
        return slots
    }

    private mutating func place(_ cell: Cell) {
        var at = home(cell.stream)
        while cells[at].stream != 0 { at = (at + 1) & mask }
        cells[at] = cell
    }

    /// Moves later cells of a run into the hole, so that no tombstones gather.
    private mutating func close(_ start: Int) {
        var hole = start
        var at = (hole + 1) & mask
        while cells[at].stream != 0 {
            let distance = (at - home(cells[at].stream)) & mask
            if distance >= (at - hole) & mask {
                cells[hole] = cells[at]
                hole = at
            }
            at = (at + 1) & mask
        }
        cells[hole] = Cell()
    }

    private mutating func grow() {
        let old = cells
        cells = Array(repeating: Cell(), count: old.count * 2)
        mask = cells.count - 1
        for cell in old where cell.stream != 0 { place(cell) }
    }
}
