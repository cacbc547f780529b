// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@testable import Worker

/// Which members of large groups count as under way.
struct BulkRoomTests {
    /// As at one node of a Cluster that is away: its users wait for it, and the others' turn comes.
    @Test func membersWhoWaitForARedisThatIsAwayTakeNoRoom() throws {
        try ScriptedShard.withPipeline { world, pipeline in
            let members = (0..<200).map { MemberPage.Member(uid: "m\($0)", level: .unset) }
            let chunk = try world.message(to: nil, members: members)
            pipeline.fanOut.begin(chunk)
            pipeline.fanOut.start(FanOut.Room(isAPNsFree: true, recipients: 1000, ofChunks: 150))
            #expect(pipeline.fanOut.undecidedOfChunks == 150, "started, and not read yet")
            pipeline.fanOut.candidates.takeAll(pipeline.lookup.postpone)
            #expect(chunk.undecided == 150 && pipeline.fanOut.undecidedOfChunks == 0)
            pipeline.lookup.readPostponed(evenIfEarly: true)
            #expect(chunk.undecided == 150 && pipeline.fanOut.undecidedOfChunks == 150, "on their way once more")
        }
    }
}
