// SPDX-License-Identifier: Apache-2.0
import PushCore
import Support
import Testing

@testable import Worker

@Suite struct ChunkTests {
    @Test func aChunkIsReadAsItWasWritten() throws {
        var members = MuteLevel.allCases.map { MemberPage.Member(uid: "u\($0)", level: $0) }
        members.append(MemberPage.Member(uid: "名\n\"前", level: .unset))
        let chunk = ChunkRecord(
            app: "im", conversation: "g\"1", part: 7, members: members,
            source: EventSource(partition: 3, offset: 9, kafkaMs: 17), raw: Array("{\"v\":1}\n\n".utf8))
        #expect(chunk.bytes.withUnsafeBytes { ChunkRecord($0) } == chunk)
        var traced = chunk
        traced.source.traceparent = Traceparent(TraceparentTests.good)
        #expect(traced.bytes.withUnsafeBytes { ChunkRecord($0) } == traced && traced != chunk)
        #expect(chunk.key == "img\"1#7")
    }

    @Test func `a member of a later version is passed over`() {
        let text = #"{"v":1,"app":"im","conv":"g","part":1,"uids":["a"],"levels":[0],"zz":[[{"a":[null]}]]}"#
        let chunk = Array((text + "\nx").utf8).withUnsafeBytes { ChunkRecord($0) }
        #expect(chunk?.members == [MemberPage.Member(uid: "a", level: .unset)])
    }

    @Test func aForeignRecordIsNoChunk() {
        let long = String(repeating: "x", count: InputLimit.user + 1)
        let head = #""v":1,"app":"im","conv":"g","part":1"#
        for text in [
            "", "\n", "{}\n", #"{"v":1}"#, "{\(head)}\n", #"{\#(head),"uids":["a"],"levels":[]}"# + "\n",
            #"{\#(head),"uids":["\#(long)"],"levels":[0]}"# + "\n",
            #"{\#(head),"uids":[1],"levels":[0]}"# + "\n", "{" + String(repeating: "[", count: 1000) + "\n",
        ] {
            #expect(Array(text.utf8).withUnsafeBytes { ChunkRecord($0) } == nil, "\(text.prefix(60))")
        }
        let odd = #"{\#(head),"uids":["a"],"levels":[1e99]}"# + "\nx"
        let chunk = Array(odd.utf8).withUnsafeBytes { ChunkRecord($0) }
        #expect(chunk?.members == [MemberPage.Member(uid: "a", level: .unset)])
    }

    /// Whatever the number and names of the members: each goes into one chunk, and the bounds of a chunk hold.
    @Test func everyMemberIsInOneChunk() {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for count in [0, 1, 31, 5000, 60_000] {
            let length = Int.random(in: 0...100, using: &random)
            let uids = (0..<count).map { "\($0)" + String(repeating: "x", count: length) }
            let plan = ChunkPlan()
            var chunks = uids.compactMap { plan.add(MemberPage.Member(uid: $0, level: .unset)) }
            #expect(chunks.allSatisfy { $0.members.count == ChunkPlan.membersMax || length > 90 }, "only full ones")
            chunks += plan.takeRest()
            #expect(plan.takeRest().isEmpty)
            #expect(chunks.flatMap { $0.members.map(\.uid) }.sorted() == uids.sorted())
            for chunk in chunks {
                #expect(chunk.members.count <= ChunkPlan.membersMax)
                #expect(chunk.members.allSatisfy { ChunkPlan.part(of: $0.uid) == chunk.part })
                #expect(chunk.members.reduce(0) { $0 + $1.uid.utf8.count } <= 100_200)
            }
        }
    }

    /// Workers of different versions must agree, or a member's messages would go through two partitions.
    @Test func aMembersPartNeverChanges() {
        #expect(["", "u1", "u2", "名前"].map(ChunkPlan.part) == [25, 24, 6, 13])
    }
}
