// SPDX-License-Identifier: Apache-2.0
import APNsProtocol
import Synchronization

/// The dedup keys in progress in all shards of a process: a copy of a message that another shard reads, from another partition,
/// waits for the first one.
///
/// A table of buckets, each of one cache line with eight words. A word is a fingerprint of a key and a state. Without locks: a key
/// is put into a free word as a bid, and is held once no other shard's bid for it is in the bucket; of two bids the one in the
/// lower place wins. Bounded: a key that finds its bucket full is not noted, and its copies do not wait.
///
/// `@unchecked Sendable`: the pointer never changes, and every access to its memory is atomic.
package final class SharedKeys: @unchecked Sendable {
    private static let places = 8
    private static let bid: UInt64 = 1
    private static let held: UInt64 = 2
    private static let stateBits: UInt64 = 3
    /// A bidder's thread was stopped: no other waits for it longer than this.
    private static let looksMax = 10_000

    private let memory: UnsafeMutableRawPointer
    private let words: UnsafeMutablePointer<Atomic<UInt64>>
    private let bucketCount: Int

    /// - Parameter bits: the table has 2 to the power of `bits` buckets, of 64 bytes each; 0 ... 20.
    package init(bits: Int = 16) {
        bucketCount = 1 << min(max(bits, 0), 20)
        let count = bucketCount * Self.places
        memory = .allocate(byteCount: count * MemoryLayout<Atomic<UInt64>>.stride, alignment: 64)
        words = memory.bindMemory(to: Atomic<UInt64>.self, capacity: count)
        for index in 0..<count { (words + index).initialize(to: Atomic(0)) }
    }

    deinit {
        words.deinitialize(count: bucketCount * Self.places)
        memory.deallocate()
    }

    private static func fingerprint(_ key: PushID) -> UInt64 {
        (key.high ^ key.low &* 0x9E37_79B9_7F4A_7C15) & ~stateBits
    }

    private func bucket(_ key: PushID) -> UnsafeMutablePointer<Atomic<UInt64>> {
        let hash = (key.low ^ key.high &* 0xD6E8_FEB8_6659_FD93) >> 20
        return words + Int(truncatingIfNeeded: hash & UInt64(bucketCount - 1)) * Self.places
    }

    private static func load(_ word: UnsafeMutablePointer<Atomic<UInt64>>) -> UInt64 {
        word.pointee.load(ordering: .sequentiallyConsistent)
    }

    /// - Returns: false if another shard has the key. It is to be asked for again once `contains` denies it.
    func take(_ key: PushID) -> Bool {
        let (bucket, print) = (bucket(key), Self.fingerprint(key))
        while true {
            var free: Int?
            for place in 0..<Self.places {
                let word = Self.load(bucket + place)
                if word == 0 {
                    if free == nil { free = place }
                } else if word & ~Self.stateBits == print {
                    return false
                }
            }
            guard let free else { return true }
            let isMine = bucket[free].compareExchange(
                expected: 0, desired: print | Self.bid, ordering: .sequentiallyConsistent
            ).exchanged
            if isMine { return wins(in: bucket, free, print) }
        }
    }

    /// Whether the bid becomes the holder.
    private func wins(in bucket: UnsafeMutablePointer<Atomic<UInt64>>, _ own: Int, _ print: UInt64) -> Bool {
        for _ in 0..<Self.looksMax {
            var hasRival = false
            for place in 0..<Self.places where place != own {
                let word = Self.load(bucket + place)
                if word & ~Self.stateBits != print { continue }
                if word & Self.stateBits == Self.held || place < own {
                    bucket[own].store(0, ordering: .sequentiallyConsistent)
                    return false
                }
                hasRival = true
            }
            if hasRival { continue }
            bucket[own].store(print | Self.held, ordering: .sequentiallyConsistent)
            return true
        }
        bucket[own].store(0, ordering: .sequentiallyConsistent)
        return false
    }

    /// The holder has ended.
    func leave(_ key: PushID) {
        let (bucket, word) = (bucket(key), Self.fingerprint(key) | Self.held)
        for place in 0..<Self.places where Self.load(bucket + place) == word {
            return bucket[place].store(0, ordering: .sequentiallyConsistent)
        }
    }

    /// A shard has the key, or is about to.
    func contains(_ key: PushID) -> Bool {
        let (bucket, print) = (bucket(key), Self.fingerprint(key))
        return (0..<Self.places).contains { Self.load(bucket + $0) & ~Self.stateBits == print }
    }

    /// Words in use; scans the whole table.
    var count: Int { (0..<bucketCount * Self.places).reduce(0) { $0 + (Self.load(words + $1) == 0 ? 0 : 1) } }
}
