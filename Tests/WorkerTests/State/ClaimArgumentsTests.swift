import PushCore
import Support
import Testing

@testable import Redis
@testable import Worker

struct ClaimArgumentsTests {
    private static func request(_ random: inout SeededGenerator) -> ClaimRequest {
        let isRevoke = Bool.random(using: &random)
        let badge: Message.Revoke.Badge = Bool.random(using: &random) ? .decrease : .keep
        let target = "t\(Int.random(in: 0...1, using: &random))"
        return ClaimRequest(
            app: "im", uid: "u", kind: isRevoke ? .revoke : .message, id: "m\(Int.random(in: 0...1, using: &random))",
            conversation: "c\(Int.random(in: 0...1, using: &random))", sentMs: .random(in: 1...2, using: &random),
            seq: [nil, -1, 1].randomElement(using: &random) ?? nil, counted: .random(using: &random),
            revoke: isRevoke ? Message.Revoke(targetMsgID: target, badge: badge) : nil,
            expireAtMs: [0, 200_000_000].randomElement(using: &random) ?? 0, nowMs: .random(in: 3...4, using: &random),
            isOneOfMany: .random(in: 0...3, using: &random) > 0)
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
        var last: ClaimRequest?
        for _ in 0..<3000 {
            // Members of a group come one after the other, other events between them.
            var request = last ?? Self.request(&random)
            if Bool.random(using: &random) { request = Self.request(&random) } else { repeats += 1 }
            request.uid = "u\(Int.random(in: 0...9, using: &random))"
            last = request
            var none = ClaimArguments()
            #expect(Self.wire(&kept, request) == Self.wire(&none, request), "seed \(seed)")
        }
        #expect(repeats > 1000)
    }
}
