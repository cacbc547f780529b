import PushCore
import Support
import Testing

@testable import Redis
@testable import Worker

struct ClaimArgumentsTests {
    private static func subject(_ random: inout SeededGenerator) -> ClaimSubject {
        let isRevoke = Bool.random(using: &random)
        let badge: Message.Revoke.Badge = Bool.random(using: &random) ? .decrease : .keep
        let target = "t\(Int.random(in: 0...1, using: &random))"
        return ClaimSubject(
            kind: isRevoke ? .revoke : .message, id: "m\(Int.random(in: 0...1, using: &random))",
            conversation: "c\(Int.random(in: 0...1, using: &random))", sentMs: .random(in: 1...2, using: &random),
            seq: [nil, -1, 1].randomElement(using: &random) ?? nil,
            revoke: isRevoke ? Message.Revoke(targetMsgID: target, badge: badge) : nil,
            expireAtMs: [0, 200_000_000].randomElement(using: &random) ?? 0)
    }

    private static func wire(_ arguments: inout ClaimArguments, _ request: ClaimRequest) -> [UInt8] {
        var command = RedisCommand()
        command.arg("key")
        arguments.write(request, to: &command)
        _ = command.finish()
        return command.withWire { Array($0) }
    }

    @Test(arguments: [11, 12, 13] as [UInt64])
    func whatIsKeptIsWhatWouldBeWritten(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var kept = ClaimArguments()
        var repeats = 0
        let subjects = (0..<8).map { _ in Self.subject(&random) }
        var request = ClaimRequest(app: "im", uid: "u", subjects[0], counted: true, nowMs: 3)
        for _ in 0..<3000 {
            // Members of a group come one after the other; between them other events, other verdicts and later turns.
            switch Int.random(in: 0...5, using: &random) {
            case 0: request.subject = subjects[Int.random(in: subjects.indices, using: &random)]
            case 1: request.counted = .random(using: &random)
            case 2: request.nowMs = .random(in: 3...4, using: &random)
            default: repeats += 1
            }
            request.uid = "u\(Int.random(in: 0...9, using: &random))"
            var none = ClaimArguments()
            #expect(Self.wire(&kept, request) == Self.wire(&none, request), "seed \(seed)")
        }
        #expect(repeats > 1000)
    }
}
