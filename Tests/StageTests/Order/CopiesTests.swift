// SPDX-License-Identifier: Apache-2.0
import JSON
import Testing
import VirtualStage
import Worker

/// One message in several partitions, which two shards read at the same time.
@Suite(.onStage(scenario: TokenPrefix.scenario)) struct CopiesTests {
    /// The same record under keys of all partitions.
    private static func copies(_ stage: Stage, of line: Line) -> [Line] {
        let topic = Configuration.Topics().events
        return (0..<stage.settings.partitions).compactMap { partition in
            let key = (0..<1000).lazy.map { Array("key-\($0)".utf8) }.first {
                stage.kafka.partition(of: $0, in: topic) == partition
            }
            return key.map { key in
                var copy = line
                copy.key = key
                return copy
            }
        }
    }

    @Test(arguments: ["", TokenPrefix.slow]) func `copies in all partitions are pushed and recorded once`(
        prefix: String
    ) throws {
        let stage = try Stage.here
        let uids = (0..<20).map { "copy\(prefix)\($0)" }
        let tokens = uids.map { token($0, "phone", prefix) }
        let binds = zip(uids, tokens).map { Line.bind($0, as: $1) }
        let events = uids.flatMap { Self.copies(stage, of: .message("\($0)-1", to: [$0])) }
        #expect(events.count == 20 * stage.settings.partitions)
        let seen = try stage.play(state: binds, events: events)
        for (uid, hex) in zip(uids, tokens) {
            #expect(seen.pushes(to: hex).count == 1, "\(uid)")
            #expect(seen.outcomes(of: "\(uid)-1") == ["\(uid)/phone accepted ok 1"])
        }
    }

    /// A recipient that is denied has no claim.
    @Test func `copies for a user who muted the conversation are recorded once`() throws {
        let stage = try Stage.here
        let events = Self.copies(stage, of: .message("mute-1", to: ["copymuted"], conv: "c-copymuted"))
        let seen = try stage.play(
            state: [.bind("copymuted"), .state("mute", "copymuted", #""conv_id":"c-copymuted","level":5"#)],
            events: events)
        #expect(seen.outcomes(of: "mute-1") == ["copymuted suppressed conv_muted"])
    }
}
