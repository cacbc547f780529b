// SPDX-License-Identifier: Apache-2.0
internal import EventLoop

/// A random number generator that a test can repeat from its printed seed.
public struct SeededGenerator: RandomNumberGenerator {
    public let seed: UInt64
    private var random: SmallRandom

    public init(seed: UInt64) {
        self.seed = seed
        random = SmallRandom(seed: seed)
    }

    public mutating func next() -> UInt64 { random.next() }
}
