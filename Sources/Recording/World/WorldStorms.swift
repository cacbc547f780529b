// SPDX-License-Identifier: Apache-2.0
/// Times of high load: storms of each kind, evenly distributed over the time of the world.
struct WorldStorms {
    struct Storm {
        var atMs: Int64
        var isOfReads: Bool
        /// The number among storms of its kind.
        var number: Int
    }

    /// Users who bind again in one storm.
    static let bindsMax = 100_000

    private let settings: WorldSettings
    private var reads = 0
    private var binds = 0

    init(_ settings: WorldSettings) {
        self.settings = settings
    }

    /// The next storm; nil at the end.
    var next: Storm? {
        let read = at(reads, of: settings.readStorms).map { Storm(atMs: $0, isOfReads: true, number: reads) }
        let bind = at(binds, of: settings.bindStorms).map { Storm(atMs: $0, isOfReads: false, number: binds) }
        guard let read, let bind else { return read ?? bind }
        return bind.atMs < read.atMs ? bind : read
    }

    mutating func removeNext() {
        if next?.isOfReads == true { reads += 1 } else { binds += 1 }
    }

    private func at(_ number: Int, of count: Int) -> Int64? {
        number < count ? settings.startMs + settings.durationMs * Int64(number + 1) / Int64(count + 1) : nil
    }

    /// The version of a user's tokens after the user's last storm; nil for no storm.
    static func version(after storm: Int?) -> Int { storm.map { $0 + 2 } ?? 1 }

    /// The previous storm with the same users; nil if there was none.
    static func before(_ storm: Int) -> Int? { storm >= 10 ? storm - 10 : nil }
}
