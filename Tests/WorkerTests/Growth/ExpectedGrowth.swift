// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

/// Expects that four times as much input costs at most six times as much: more would be worse than its size.
///
/// - Parameter work: is given the size; what it needs for that is to be made in `prepare`.
func expectNoMoreThanItsSize<Input>(
    _ name: String, at size: Int, _ prepare: (Int) throws -> Input, _ work: (Input) throws -> Void,
    sourceLocation: SourceLocation = #_sourceLocation
) rethrows {
    let small = try prepare(size)
    let large = try prepare(4 * size)
    // Once before: buffers that stay, and what is made at the first use only, are no matter of this size.
    try work(large)
    let one = try CountedWork.of { try work(small) }
    let four = try CountedWork.of { try work(large) }
    /// A few allocations are there whatever the size.
    func grows(_ one: UInt64, _ four: UInt64, _ least: UInt64) -> Bool { four > 6 * max(one, least) }
    let isWorse =
        grows(one.allocations, four.allocations, 64) || grows(one.bytes, four.bytes, 16_384)
        || grows(one.instructions ?? 0, four.instructions ?? 0, 100_000)
    #expect(!isWorse, "\(name): \(one) at \(size), \(four) at four times that", sourceLocation: sourceLocation)
}
