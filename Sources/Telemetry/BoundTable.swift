// SPDX-License-Identifier: Apache-2.0
/// Rising bounds in their own memory. Several values per push are sorted into them; two arrays would be retained and
/// released each time.
struct BoundTable: ~Copyable, @unchecked Sendable {
    // Unchecked: the memory behind the pointers never changes after init.
    private let bounds: UnsafeMutablePointer<UInt64>
    /// For each bit width of a value, the first bound that may contain it, so the search starts near its end.
    private let first: UnsafeMutablePointer<Int>
    private let count: Int

    init(_ raw: [UInt64]) {
        count = raw.count
        bounds = .allocate(capacity: max(1, raw.count))
        for (index, bound) in raw.enumerated() { (bounds + index).initialize(to: bound) }
        first = .allocate(capacity: 65)
        for width in 0...64 {
            let smallest: UInt64 = width == 0 ? 0 : 1 << UInt64(width - 1)
            (first + width).initialize(to: raw.firstIndex { $0 >= smallest } ?? raw.count)
        }
    }

    deinit {
        bounds.deallocate()
        first.deallocate()
    }

    /// The index of the first bound that is not below the value; the number of bounds if all are below.
    @inline(__always)
    func index(of raw: UInt64) -> Int {
        var index = first[64 &- raw.leadingZeroBitCount]
        while index < count, bounds[index] < raw { index &+= 1 }
        return index
    }
}
