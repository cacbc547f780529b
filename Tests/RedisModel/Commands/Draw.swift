// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// What SPOP, SRANDMEMBER and HRANDFIELD take: the seed decides.
enum Draw {
    /// Up to `count` different ones; of a negative number so many, with repeats.
    static func some(_ count: Int, of all: [Bytes], _ random: inout SmallRandom) -> [Bytes] {
        if all.isEmpty || count == 0 { return [] }
        if count < 0 { return (0..<min(-count, 1 << 20)).map { _ in all[random.below(all.count)] } }
        if count >= all.count { return all }
        var rest = all
        for place in 0..<count { rest.swapAt(place, place + random.below(rest.count - place)) }
        return Array(rest.prefix(count))
    }
}
