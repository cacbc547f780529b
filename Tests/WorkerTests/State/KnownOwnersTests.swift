// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis
import Support
import Testing

@testable import Worker

/// A push that asks for no owner never goes to whom a token was taken from, however a change of owner was cut short.
@Suite(.timeLimit(.minutes(10)))
struct KnownOwnersTests {
    private func bind(_ version: Int64) -> UserState.Change {
        .bind(
            UserState.Binding(
                device: "d",
                token: TokenRecord(
                    hex: "aa", environment: .sandbox, topic: "com.example.im", type: .alert, boundMs: StateWorld.base),
                version: version))
    }

    private func unbind(_ version: Int64) -> UserState.Change {
        .unbind(UserState.Unbinding(device: "d", token: "aa", version: version))
    }

    private func note(of uid: String, _ world: StateWorld) async throws -> String {
        try await world.text("HGET", "c:s:{\(StateWorld.app):\(uid)}", "o")
    }

    @Test func ownersAreKnownUntilATokenChanges() async throws {
        let world = try StateWorld()
        try await world.connect()
        #expect(try await world.pushed("A") == [])
        #expect(try await note(of: "A", world) == "", "nobody is noted who has no token")
        try await world.change("A", bind(1))
        #expect(try await world.pushed("A") == ["aa"])
        let first = try await note(of: "A", world)
        #expect(first.hasPrefix("1 "))
        try await world.change("A", bind(2))
        #expect(try await note(of: "A", world) == first)
        #expect(try await world.pushed("A") == ["aa"])
        #expect(try await note(of: "A", world).hasPrefix("2 "))
        await world.end()
    }

    /// What another master took may be missing at this one: its word for the owners is none.
    @Test func ownersFoundAtAnotherMasterAreUnknown() async throws {
        let world = try StateWorld()
        try await world.connect()
        try await world.change("A", bind(1))
        let token = try #require(try await world.recipient("A").recipient.tokens.first)
        try await world.change("B", bind(2))
        // As a failover leaves it that has lost the taking and kept an old note.
        try await world.raw(
            "HSET", "c:u:{\(StateWorld.app):A}", TokenText.field(device: token.device, token.record),
            TokenText.record(token))
        try await world.raw("HSET", "c:s:{\(StateWorld.app):A}", "v", "1", "o", "1 12345")
        #expect(try await world.recipient("A").recipient.tokens == [token])
        #expect(try await world.pushed("A") == [])
        await world.end()
    }

    @Test func anUnbindThatWasCutLeavesNothingOnceAnotherHasTheToken() async throws {
        let world = try StateWorld()
        try await world.connect()
        try await world.change("A", bind(1))
        #expect(try await world.pushed("A") == ["aa"])
        #expect(try await world.change("A", unbind(1), steps: 1) == nil)
        try await world.change("B", bind(2))
        #expect(try await world.pushed("A") == [])
        #expect(try await world.recipient("A").recipient.tokens.isEmpty)
        #expect(try await world.pushed("B") == ["aa"])
        await world.end()
    }

    @Test func aTokenThatIsAddedLateIsNotPushedTo() async throws {
        let world = try StateWorld()
        try await world.connect()
        var late = StateWorld.TaskRunner(
            task: UserStateTask(
                app: StateWorld.app, sentMs: StateWorld.base, nowMs: StateWorld.base,
                state: UserState(uid: "A", change: bind(1))))
        #expect(try await world.step(&late) == nil)
        try await world.change("B", bind(2))
        while try await world.step(&late) == nil { #expect(try await world.pushed("A") == []) }
        #expect(try await world.pushed("A") == [])
        #expect(try await world.pushed("B") == ["aa"])
        await world.end()
    }

    @Test func aTokenThatIsBroughtBackIsNotPushedToWhereAnotherHasIt() async throws {
        let world = try StateWorld()
        try await world.connect()
        try await world.change("A", bind(1))
        #expect(try await world.pushed("A") == ["aa"])
        let token = try #require(try await world.recipient("A").recipient.tokens.first)
        try await world.change("B", bind(2))
        // The first step of `carillon tokens restore`, which was ended there.
        let tombstone = Tombstone(.gone, uid: "A", token: token)
        _ = try await world.ask(
            { try $0.reviveToken(app: StateWorld.app, tombstone, tag: $1) }, { $0.int64 })
        #expect(try await world.recipient("A").recipient.tokens.map(\.record.hex) == ["aa"])
        #expect(try await world.pushed("A") == [])
        await world.end()
    }

    /// Binds and unbinds of three users, step by step in a random order, some of them cut for good, with pushes between: none
    /// goes to whom a newer bind, once applied, took the token from.
    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func noPushGoesToAFormerOwner(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let world = try StateWorld()
        try await world.connect()
        let users = ["A", "B", "C"]
        for round in 0..<4 {
            try await world.raw("FLUSHALL")
            var newest: Int64 = 0
            var running: [(uid: String, version: Int64, isBind: Bool, runner: StateWorld.TaskRunner)] = []
            func begin(_ version: Int64, isBind: Bool) {
                let uid = users[Int(version) % users.count]
                running.append(
                    (
                        uid, version, isBind,
                        StateWorld.TaskRunner(
                            task: UserStateTask(
                                app: StateWorld.app, sentMs: StateWorld.base, nowMs: StateWorld.base,
                                state: UserState(uid: uid, change: isBind ? bind(version) : unbind(version))))
                    ))
            }
            for version in 1...6 as ClosedRange<Int64> {
                begin(version, isBind: true)
                if Bool.random(using: &random) { begin(version, isBind: false) }
            }
            while !running.isEmpty {
                let index = Int.random(in: 0..<min(4, running.count), using: &random)
                let (version, isBind) = (running[index].version, running[index].isBind)
                if let outcome = try await world.step(&running[index].runner) {
                    if isBind, outcome == .applied(.none) { newest = max(newest, version) }
                    running.remove(at: index)
                } else if Int.random(in: 0..<12, using: &random) == 0 {
                    running.remove(at: index)
                }
                for uid in users where try await !world.pushed(uid).isEmpty {
                    let bound = try #require(try await world.recipient(uid).recipient.tokens.first).version
                    #expect(bound >= newest, "seed \(seed) round \(round): \(uid) by \(bound), \(newest) is applied")
                }
            }
        }
        await world.end()
    }
}
