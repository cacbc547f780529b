// SPDX-License-Identifier: Apache-2.0
/// Written commands in order, as a master sends them to its replicas.
struct CommandStream {
    struct Entry {
        let database: Int
        let words: [Bytes]
    }

    /// Without replicas nothing is kept.
    var isWanted = false
    private(set) var entries: [Entry] = []
    /// The number of entries before the kept ones.
    private(set) var firstIndex = 0
    /// Bytes ever written: `master_repl_offset`.
    private(set) var byteCount = 0

    var endIndex: Int { firstIndex + entries.count }

    mutating func append(_ words: [Bytes], database: Int) {
        guard isWanted else { return }
        byteCount += words.reduce(4) { $0 + $1.count + 5 }
        entries.append(Entry(database: database, words: words))
    }

    func entry(at index: Int) -> Entry? {
        let place = index - firstIndex
        return entries.indices.contains(place) ? entries[place] : nil
    }

    /// Every replica has what is before this index.
    mutating func drop(before index: Int) {
        guard index > firstIndex else { return }
        entries.removeFirst(min(index - firstIndex, entries.count))
        firstIndex = index
    }

    /// New data came in another way.
    mutating func reset() {
        firstIndex = endIndex
        entries = []
    }
}
