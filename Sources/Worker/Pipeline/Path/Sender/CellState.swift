// SPDX-License-Identifier: Apache-2.0
/// One cell of `DeviceOccupancy`: whether it is taken, and which shard left it last, at what time. 32 bits, so that all
/// of it changes in one atomic operation.
struct CellState: Equatable {
    enum Use: UInt32 {
        case free
        case taken
        /// Taken, and awaited by another shard.
        case awaited
        case unused
    }

    /// Bits 0-1 `use`, 2-6 the shard, 7-31 the time in ms, modulo 2^25 (nine hours).
    private(set) var bits: UInt32

    /// Free, never left.
    init() { bits = Self.nobody << 2 }

    init(bits: UInt32) { self.bits = bits }

    private static let nobody: UInt32 = 31
    /// Left by several shards, or by one with a number that does not fit.
    private static let several: UInt32 = 30
    /// A shard that leaves a cell this long after another shard is the only one that is remembered. Longer than any
    /// wait for a claim.
    private static let forgottenMs: Int32 = 60_000

    var use: Use { Use(rawValue: bits & 3) ?? .unused }
    private var shard: UInt32 { bits >> 2 & 31 }

    func with(_ use: Use) -> CellState { CellState(bits: bits & ~3 | use.rawValue) }

    /// Free, with the updated knowledge of its leaving.
    func left(by shard: Int, atMs: UInt64) -> CellState {
        let own = shard < Int(Self.several) ? UInt32(shard) : Self.several
        let isAlone = self.shard == own || self.shard == Self.nobody || sinceLeftMs(atMs) > Self.forgottenMs
        let left = isAlone ? own : Self.several
        return CellState(bits: UInt32(truncatingIfNeeded: atMs) << 7 | left << 2 | Use.free.rawValue)
    }

    func wasLeft(byOtherThan shard: Int, sinceMs: UInt64) -> Bool {
        if self.shard == Self.nobody || (Int(self.shard) == shard && self.shard != Self.several) { return false }
        return sinceLeftMs(sinceMs) <= 0
    }

    /// Time since the last leaving; the shorter of the two ways around.
    private func sinceLeftMs(_ nowMs: UInt64) -> Int32 {
        // In the upper bits, so that the difference wraps like the time.
        Int32(bitPattern: UInt32(truncatingIfNeeded: nowMs) << 7 &- (bits & ~127)) >> 7
    }
}
