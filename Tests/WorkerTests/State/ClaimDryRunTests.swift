// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis
import Support
import Testing

@testable import Worker

extension StateWorld {
    /// What a claim would answer, claiming nothing.
    func dryRun(_ request: ClaimRequest) async throws -> ClaimReply {
        let reply = try await ask({ try $0.claimDryRun(request, tag: $1) }, { ClaimReply($0) })
        guard let reply else { throw SetupFault("no claim's reply") }
        return reply
    }
}

@Suite(.timeLimit(.minutes(10)))
struct ClaimDryRunTests {
    private let base = StateWorld.base

    /// Everything that the server holds, in one number.
    private func digest(_ world: StateWorld) throws -> String { try world.server.command("DEBUG DIGEST") }

    /// Nil: the event is no claim.
    private func request(_ event: BadgeEvent, _ uid: String, clearsOnRead: Bool) -> ClaimRequest? {
        switch event {
        case .message(let id, let conversation, let sent, let seq):
            return .message(uid, id, conversation, sent: sent, seq: seq)
        case .revoke(let id, let conversation, let sent, let target, let badge):
            let subject = ClaimSubject(
                kind: .revoke, id: id, conversation: conversation, sentMs: sent,
                revoke: Message.Revoke(targetMsgID: target, badge: badge), expireAtMs: base,
                clearsOnRead: clearsOnRead)
            return ClaimRequest(
                app: StateWorld.app, uid: uid, subject, counted: badge == .count, nowMs: base + 1000)
        case .read, .report: return nil
        }
    }

    /// 20 seeds, 5 users each with up to 16 facts in any order and with repeats.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func itSaysWhatTheClaimThenSays(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let world = try StateWorld()
        try await world.connect()
        for round in 0..<5 {
            let uid = "u\(round)"
            let clearsOnRead = Bool.random(using: &random)
            let events = BadgeLawTests.events(&random)
            let again = events.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }
            for event in (events + again).shuffled(using: &random) {
                guard var request = request(event, uid, clearsOnRead: clearsOnRead) else {
                    try await BadgeLawTests.apply(event, to: uid, in: world)
                    continue
                }
                if Int.random(in: 0..<5, using: &random) == 0 { request.counted.toggle() }
                let before = try digest(world)
                let said = try await world.dryRun(request)
                #expect(try digest(world) == before, "seed \(seed) \(event) wrote")
                #expect(try await world.claim(request) == said, "seed \(seed) round \(round) \(event)")
                if Int.random(in: 0..<8, using: &random) == 0 { try await world.finish(request) }
            }
        }
        await world.end()
    }

    /// Beyond 1000 members the claim drops the oldest.
    @Test func itSaysWhatIsLeftOfAFullLedger() async throws {
        let world = try StateWorld()
        try await world.connect()
        for index in 0..<1000 as Range<Int64> {
            _ = try await world.claim(.message("u", "m\(index)", "c", sent: base + index))
        }
        try await world.change("u", .badgeReport(device: "d", value: 7, clientMs: base + 100))
        let request = ClaimRequest.message("u", "last", "c", sent: base + 2000)
        let said = try await world.dryRun(request)
        // 7 as of the report, and 900 that were sent after it.
        #expect(said.badge == 907)
        #expect(try await world.claim(request) == said)
        await world.end()
    }
}
