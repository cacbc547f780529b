// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis
import Support
import Testing

@testable import Worker

/// Redis remembers that a lower badge was not told, so that a crash between read and push loses nothing.
@Suite struct ClearOwedTests {
    @Test func aLoweredBadgeIsOwedUntilTheDevicesHaveIt() async throws {
        let world = try StateWorld()
        try await world.connect()
        let base = StateWorld.base
        func owes(_ seq: Int64, at ms: Int64) async throws -> Bool {
            try await world.owesClear("u", .read(conversation: "c", upTo: .init(seq: seq)), at: ms)
        }
        #expect(try await !owes(1, at: 1), "nothing was counted, so nothing is lower")
        _ = try await world.claim(.message("u", "m", "c", sent: base + 2, seq: 2))
        #expect(try await owes(2, at: 3))
        #expect(try await owes(2, at: 3), "told again after a crash")
        #expect(try await owes(3, at: 4), "still")
        _ = try await world.ask({ try $0.loweredBadgeSent(app: StateWorld.app, uid: "u", tag: $1) }, { $0.int64 })
        #expect(try await !owes(3, at: 4))
        #expect(try await !owes(4, at: 5))
        await world.end()
    }

    @Test func whereItIsOffNothingIsRemembered() async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await world.claim(.message("u", "m", "c", sent: StateWorld.base + 2, seq: 2))
        try await world.change("u", .read(conversation: "c", upTo: .init(seq: 2)), at: 3)
        #expect(try await world.raw("HEXISTS", "c:s:{\(StateWorld.app):u}", "w") == 0)
        await world.end()
    }

    /// A revoke is told like a read: once, and after a crash again.
    @Test func aRevokeThatLoweredTheBadgeIsOwedToo() async throws {
        let world = try StateWorld()
        try await world.connect()
        let base = StateWorld.base
        func revoke(_ id: String, of target: String, clears: Bool = true) -> ClaimRequest {
            let subject = ClaimSubject(
                kind: .revoke, id: id, conversation: "c", sentMs: base + 9, revoke: .init(targetMsgID: target),
                expireAtMs: base, clearsOnRead: clears)
            return ClaimRequest(app: StateWorld.app, uid: "u", subject, counted: false, nowMs: base + 1000)
        }
        _ = try await world.claim(.message("u", "m1", "c", sent: base))
        _ = try await world.claim(.message("u", "m2", "c", sent: base))
        _ = try await world.claim(.message("u", "m3", "c", sent: base))
        let nothing = try await world.claim(revoke("r0", of: "none"))
        #expect(!nothing.lowered && !nothing.owesClear)
        let first = try await world.claim(revoke("r1", of: "m1"))
        #expect(first.lowered && first.owesClear && first.badge == 2)
        #expect(try await world.claim(revoke("r1", of: "m1")).owesClear, "told again after a crash")
        _ = try await world.ask({ try $0.loweredBadgeSent(app: StateWorld.app, uid: "u", tag: $1) }, { $0.int64 })
        let told = try await world.claim(revoke("r1", of: "m1"))
        #expect(told.lowered && !told.owesClear)
        // Off, nothing is remembered.
        let off = try await world.claim(revoke("r2", of: "m2", clears: false))
        #expect(off.lowered && !off.owesClear)
        #expect(try await world.raw("HEXISTS", "c:s:{im:u}", "w") == 0)
        // Of several users in one call each is told his own.
        let both = try await world.ask(
            {
                let request = revoke("r3", of: "m3")
                try $0.claim(
                    request.subject, app: request.app, uids: ["v", "u"], counted: false, nowMs: base, tag: $1)
            },
            { reply in
                var claims: [ClaimReply?] = []
                reply.forEach { claims.append(ClaimReply($0)) }
                return claims
            })
        #expect(both.map { $0?.lowered } == [false, true] && both.map { $0?.owesClear } == [false, true])
        await world.end()
    }
}
