// SPDX-License-Identifier: Apache-2.0
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

    @Test func aKeyOfTheWrongKindIsItsOwnersAloneAndLeavesNothingHalfDone() async throws {
        let world = try StateWorld()
        try await world.connect()
        let users = (1...5).map { "u\($0)" }
        _ = try await world.text("SET", "c:l:{\(StateWorld.app):u2}", "broken")
        _ = try await world.text("SET", "c:s:{\(StateWorld.app):u3}", "broken")
        _ = try await world.raw("RPUSH", "c:d2:{\(StateWorld.app):u4}mm", "broken")
        let request = ClaimRequest.message("", "m", "c", sent: StateWorld.base)
        let fresh = ClaimReply(state: .fresh, badge: 1, adds: true)
        #expect(try await world.claim(request, each: users) == [fresh, nil, nil, nil, fresh])
        for user in ["u2", "u3", "u4"] {
            var own = request
            own.uid = user
            await #expect(throws: RedisFault(.wrongType)) { try await world.claim(own) }
            // Nobody has claimed it, and nobody's number has moved.
            let seen = try await world.ask({ try $0.peek(own, tag: $1) }, { ClaimReply($0) })
            #expect(seen == ClaimReply(state: .fresh, badge: nil))
        }
        #expect(try await world.raw("EXISTS", "c:d2:{\(StateWorld.app):u2}mm", "c:d2:{\(StateWorld.app):u3}mm") == 0)
        await world.end()
    }

    /// A field that another program has written counts as absent, as it does for whoever reads the badge.
    @Test func aBadgeThatDoesNotReadIsNone() async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await world.raw("HSET", "c:s:{\(StateWorld.app):u}", "b", "garbage", "rc", "garbage")
        let request = ClaimRequest.message("u", "m", "c", sent: StateWorld.base, seq: 1)
        #expect(try await world.claim(request) == ClaimReply(state: .fresh, badge: 1, adds: true))
        #expect(
            try await world.change("u", .badgeReport(device: "d", value: 4, clientMs: StateWorld.base + 1))
                == .applied(.badge(4, before: 1)))
        _ = try await world.raw("HSET", "c:s:{\(StateWorld.app):u}", "b", "garbage")
        #expect(
            try await world.change("u", .read(conversation: "c", upTo: .init(seq: 1)), at: 9)
                == .applied(.badge(0, before: 1)))
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
