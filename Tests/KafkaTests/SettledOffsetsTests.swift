// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

@testable import Kafka

@Suite("Settled offsets as a commit's metadata")
struct SettledOffsetsTests {
    private func parse(_ text: String, committed: Int64) -> SettledOffsets? {
        parse(Array(text.utf8), committed: committed)
    }

    private func parse(_ text: [UInt8], committed: Int64) -> SettledOffsets? {
        text.withUnsafeBytes { SettledOffsets(metadata: $0, committed: committed) }
    }

    /// A tool that copies a group to another cluster may copy the metadata to the same offset, while others of the log are shifted.
    @Test func `a list of another cluster is ignored, and one without a cluster is read`() {
        let list = settled(5, [7, 9])
        let cluster = SettledOffsets.cluster("lkc-1")
        func read(_ text: [UInt8], _ cluster: UInt32?) -> SettledOffsets? {
            text.withUnsafeBytes { SettledOffsets(metadata: $0, committed: 5, cluster: cluster) }
        }
        for newestMs in [nil, 1_790_000_000_000] as [Int64?] {
            var list = list
            list.newestMs = newestMs
            let text = list.metadata(cluster: cluster)
            #expect(read(text, cluster) == list && read(text, nil) == list)
            #expect(read(text, SettledOffsets.cluster("lkc-2")) == nil)
            #expect(read(list.metadata(), cluster) == list)
        }
        for text in ["carillon1:5:UQ:c", "carillon1:5:UQ:cx", "carillon1:5:UQ:c99999999999", "carillon1:5:UQ:c1:c2"] {
            #expect(parse(text, committed: 5) == nil, "\(text)")
        }
    }

    private func settled(_ base: Int64, _ offsets: [Int64]) -> SettledOffsets {
        var settled = SettledOffsets(base: base)
        for offset in offsets { settled.insert(offset) }
        return settled
    }

    @Test(
        arguments: [
            (0, [], ""), (5, [5], "carillon1:5:AQ"), (5, [6, 12], "carillon1:5:gg"), (100, [108], "carillon1:100:AAE"),
            (.max - 30_000, [.max - 29_999], "carillon1:9223372036854745807:Ag"),
        ] as [(Int64, [Int64], String)])
    func theTextIs(base: Int64, offsets: [Int64], text: String) {
        let settled = settled(base, offsets)
        #expect(String(decoding: settled.metadata(), as: UTF8.self) == text)
        #expect(parse(text, committed: base) == (offsets.isEmpty ? nil : settled))
        #expect(offsets.allSatisfy(settled.contains))
        #expect(settled.end == (offsets.max().map { $0 + 1 } ?? base))
    }

    @Test(arguments: [
        "", "x", "carillon1:", "carillon1:5", "carillon1:5:", "carillon1:6:AQ", "carillon1:05:AQ", "carillon1:5:A",
        "carillon1:5:AQ==", "carillon1:5:A Q", "carillon1:5:AB", "carillon2:5:AQ", "CARILLON1:5:AQ", "carillon1:5:AAAA",
        "carillon1:5:\0", " carillon1:5:AQ", "carillon1:-5:AQ", "{\"committed\":5}",
        "carillon1:5:" + String(repeating: "/", count: 4000), "carillon1:5:" + String(repeating: "_", count: 4000),
        "carillon1:5:" + String(repeating: "A", count: 1_000_000),
    ])
    func foreignOrBrokenRecordsAreIgnored(text: String) {
        #expect(parse(text, committed: 5) == nil)
    }

    @Test func theTimeOfTheNewestRecordGoesAlong() {
        var settled = settled(5, [6, 12])
        settled.newestMs = 1_790_000_000_000
        #expect(String(decoding: settled.metadata(), as: UTF8.self) == "carillon1:5:gg:1790000000000")
        #expect(parse("carillon1:5:gg:1790000000000", committed: 5) == settled)
        for text in ["carillon1:5:gg:", "carillon1:5:gg:x", "carillon1:5:gg:1:2", "carillon1:5::1"] {
            #expect(parse(text, committed: 5) == nil, "\(text)")
        }
    }

    @Test(arguments: [-1, -1001, .min, .max, .max - 1] as [Int64])
    func anImpossibleOffsetHasNone(committed: Int64) {
        #expect(parse("carillon1:\(committed):AQ", committed: committed) == nil)
    }

    @Test func offsetsOutsideItsReachAreLeftOut() {
        var settled = SettledOffsets(base: 10)
        for offset in [-1, 9, .min, .max, 10 + SettledOffsets.capacity] as [Int64] {
            settled.insert(offset)
            #expect(!settled.contains(offset))
        }
        #expect(settled.isEmpty)
        settled.insert(9 + SettledOffsets.capacity)
        #expect(settled.contains(9 + SettledOffsets.capacity))
        #expect(settled.metadata().count <= 4000)
        #expect(parse(settled.metadata(), committed: 10) == settled)
        #expect(SettledOffsets.capacity >= 20_000, "the whole of limits.window")
    }

    @Test(
        arguments: [
            (10, [11], 10, [13], [11, 13]), (10, [11], 5, [6, 10, 12], [10, 11, 12]), (10, [], 50, [51], [51]),
            (10, [12], 5, [7], [12]), (0, [1], SettledOffsets.capacity, [SettledOffsets.capacity + 1], [1]),
        ] as [(Int64, [Int64], Int64, [Int64], [Int64])])
    func anotherListAddsItsOffsetsFromTheBaseOn(
        base: Int64, own: [Int64], otherBase: Int64, others: [Int64], all: [Int64]
    ) {
        var union = settled(base, own)
        union.formUnion(settled(otherBase, others))
        #expect(union == settled(base, all))
    }

    @Test func aBrokerThatTakesLessGetsTheNearerOnes() {
        let settled = settled(1000, Array(1001..<2000))
        for bound in [0, 10, 15, 16, 17, 100, 171, 1000] {
            let text = settled.metadata(maxCharacters: bound)
            #expect(text.count <= bound)
            guard let cut = parse(text, committed: 1000) else {
                #expect(text.isEmpty)
                continue
            }
            #expect((1001..<cut.end).allSatisfy(cut.contains) && cut.end <= 2000)
        }
    }

    @Test func anySetComesBackAndBrokenTextTrapsNowhere() {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SeededGenerator(seed: seed)
        for round in 0..<100 {
            let base = Int64(random.next() % (1 << (1 + random.next() % 61)))
            let reach = 1 + random.next() % 30_000
            let offsets = (0..<random.next() % 3000).map { _ in base + Int64(random.next() % reach) }
            let settled = settled(base, offsets)
            var text = settled.metadata()
            #expect(text.count <= 4000, "seed \(seed) round \(round)")
            let near = Set(offsets.filter { $0 - base < SettledOffsets.capacity })
            let parsed = parse(text, committed: base) ?? SettledOffsets(base: base)
            #expect(parsed == settled, "seed \(seed) round \(round)")
            let told = Set((base..<base + Int64(reach)).filter(parsed.contains))
            #expect(told == near, "seed \(seed) round \(round)")
            for _ in 0..<20 where !text.isEmpty {
                let place = Int(random.next() % UInt64(text.count))
                switch random.next() % 3 {
                case 0: text[place] = UInt8(truncatingIfNeeded: random.next())
                case 1: text.remove(at: place)
                default: text.insert(UInt8(truncatingIfNeeded: random.next()), at: place)
                }
                // Whatever it says holds only for offsets from the committed one on.
                if let broken = parse(text, committed: base) {
                    #expect(broken.base == base && broken.end <= base + SettledOffsets.capacity, "seed \(seed)")
                }
            }
        }
    }
}
