import PushCore
import Redis
import Support
import Testing

@testable import Worker

/// Claims of several users in one call of the script, beside the same claims one by one.
@Suite(.timeLimit(.minutes(10)))
struct ClaimTogetherTests {
    /// Users `b…` are claimed together, their twins `a…` each alone; reads and reports come between.
    @Test(arguments: 1...12 as ClosedRange<UInt64>)
    func severalInOneCallAreAnsweredAsEachAlone(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let world = try StateWorld()
        try await world.connect()
        var claims = 0
        for round in 0..<4 {
            let told = (BadgeLawTests.events(&random) + BadgeLawTests.events(&random)).shuffled(using: &random)
            for event in told {
                let users = (0..<5).filter { _ in Bool.random(using: &random) }.shuffled(using: &random)
                guard let request = event.claim(of: "") else {
                    for user in users {
                        for twin in ["a", "b"] {
                            try await BadgeLawTests.apply(event, to: "\(twin)\(round)-\(user)", in: world)
                        }
                    }
                    continue
                }
                if users.isEmpty { continue }
                var alone: [ClaimReply] = []
                for user in users {
                    var own = request
                    own.uid = "a\(round)-\(user)"
                    alone.append(try await world.claim(own))
                }
                let together = try await world.claim(request, each: users.map { "b\(round)-\($0)" })
                #expect(together == alone, "seed \(seed) \(event) of \(users)")
                claims += users.count
            }
            for user in 0..<5 {
                #expect(
                    try await world.badge("a\(round)-\(user)") == world.badge("b\(round)-\(user)"), "seed \(seed)")
            }
        }
        #expect(claims > 20, "seed \(seed) tries too little")
        await world.end()
    }

    @Test func aKeyOfTheWrongKindEndsTheCallAndClaimingEachAloneCountsNothingTwice() async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await world.text("SET", "c:l:{\(StateWorld.app):u2}", "broken")
        let request = ClaimRequest.message("", "m", "c", sent: StateWorld.base)
        let users = ["u1", "u2", "u3"]
        await #expect(throws: RedisFault(.wrongType)) { try await world.claim(request, each: users) }
        var own = request
        for (user, state) in [("u1", ClaimReply.State.resume), ("u3", .fresh)] {
            own.uid = user
            #expect(try await world.claim(own) == ClaimReply(state: state, badge: 1))
        }
        own.uid = "u2"
        await #expect(throws: RedisFault(.wrongType)) { try await world.claim(own) }
        await world.end()
    }

    @Test func ownersOfSeveralTokensComeInTheirOrder() async throws {
        let world = try StateWorld()
        try await world.connect()
        for key in ["t1", "t3"] { _ = try await world.text("SET", "c:o:{\(StateWorld.app):\(key)}", "of \(key)") }
        _ = try await world.raw("SADD", "c:o:{\(StateWorld.app):t4}", "no text")
        let answers = try await world.ask(
            { try $0.owners(app: StateWorld.app, tokens: ["t1", "t2", "t3", "t4"], tag: $1) },
            { reply in
                var answers: [String?] = []
                reply.forEach { answers.append($0.string) }
                return answers
            })
        #expect(answers == ["of t1", nil, "of t3", nil])
        await world.end()
    }
}

extension BadgeEvent {
    /// The claim that the event is; nil of a read or report.
    fileprivate func claim(of uid: String) -> ClaimRequest? {
        switch self {
        case .message(let id, let conversation, let sent, let seq):
            .message(uid, id, conversation, sent: sent, seq: seq)
        case .revoke(let id, let conversation, let sent, let target, let badge):
            .revoke(uid, id, conversation, sent: sent, target: target, badge: badge)
        case .read, .report: nil
        }
    }
}

extension StateWorld {
    fileprivate func claim(_ request: ClaimRequest, each uids: [String]) async throws -> [ClaimReply?] {
        try await ask(
            {
                try $0.claim(
                    request.subject, app: request.app, uids: uids, counted: request.counted, nowMs: request.nowMs,
                    tag: $1)
            },
            { reply in
                var claims: [ClaimReply?] = []
                reply.forEach { claims.append(ClaimReply($0)) }
                return claims
            })
    }
}
