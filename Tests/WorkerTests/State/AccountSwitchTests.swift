// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis
import Support
import Testing

@testable import Worker

/// A phone that another user logs in on, without an unbind: all that the former user had bound on it ends.
@Suite(.timeLimit(.minutes(10)))
struct AccountSwitchTests {
    private struct Change: Sendable {
        var uid: String
        var token: String
        var version: Int64
        var ms: Int64
        var device = "phone"
        var type: TokenRecord.Kind = .alert

        var bind: UserState.Change {
            .bind(
                UserState.Binding(
                    device: device,
                    token: TokenRecord(
                        hex: token, environment: .production, topic: "com.example.im", type: type,
                        activityID: type == .activity ? "ride" : nil, boundMs: StateWorld.base + ms),
                    version: version))
        }
    }

    /// A's phone and A's pad, and B's login on the phone.
    private static let ofA = [
        Change(uid: "A", token: "a1", version: 1, ms: 0), Change(uid: "A", token: "a2", version: 1, ms: 1, type: .voip),
        Change(uid: "A", token: "a3", version: 1, ms: 2, type: .start),
        Change(uid: "A", token: "a4", version: 1, ms: 3, type: .activity),
        Change(uid: "A", token: "b1", version: 1, ms: 3, device: "pad"),
    ]
    private static let ofB = Change(uid: "B", token: "a1", version: 2, ms: 100, device: "new")

    private func owner(_ token: String, _ world: StateWorld) async throws -> OwnerReply? {
        try await world.ask({ try $0.owner(app: StateWorld.app, token: token, tag: $1) }, { OwnerReply($0) })
    }

    private func tokens(_ uid: String, _ world: StateWorld) async throws -> [String] {
        try await world.recipient(uid).recipient.tokens.map(\.record.hex).sorted()
    }

    private func runner(_ change: Change) -> StateWorld.TaskRunner {
        StateWorld.TaskRunner(
            task: UserStateTask(
                app: StateWorld.app, sentMs: StateWorld.base + change.ms, nowMs: StateWorld.base + 1000,
                state: UserState(uid: change.uid, change: change.bind)))
    }

    @Test func `a bind that takes a token ends all that its former owner bound on that device`() async throws {
        let world = try StateWorld()
        try await world.connect()
        for change in Self.ofA { try await world.change(change.uid, change.bind) }
        #expect(try await world.pushed("A") == ["a1", "a2", "a3", "a4", "b1"])
        #expect(try await world.change("B", Self.ofB.bind) == .applied(.none))
        #expect(try await tokens("A", world) == ["b1"])
        #expect(try await world.pushed("A") == ["b1"])
        #expect(try await world.pushed("B") == ["a1"])
        // A push that waited asks the owner entry.
        for token in ["a2", "a3", "a4"] { #expect(try await owner(token, world)?.isBound == false, "\(token)") }
        // A logs in again on the phone.
        let again = Change(uid: "A", token: "a2", version: 2, ms: 200, type: .voip)
        #expect(try await world.change("A", again.bind) == .applied(.none))
        #expect(try await world.pushed("A") == ["a2", "b1"])
        // Also a bind with the same version, if it was sent later.
        let same = Change(uid: "A", token: "a3", version: 1, ms: 201, type: .start)
        #expect(try await world.change("A", same.bind) == .applied(.none))
        #expect(try await world.pushed("A") == ["a2", "a3", "b1"])
        await world.end()
    }

    @Test func `a token that was bound after the switch stays`() async throws {
        let world = try StateWorld()
        try await world.connect()
        for change in Self.ofA { try await world.change(change.uid, change.bind) }
        try await world.change("A", Change(uid: "A", token: "a2", version: 2, ms: 150, type: .voip).bind)
        try await world.change("B", Self.ofB.bind)
        #expect(try await world.pushed("A") == ["a2", "b1"])
        await world.end()
    }

    /// Any order of the records, each perhaps twice, step by step between each other, some of them cut and read again.
    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func `any order of the records ends alike and reaches the former owner no more`(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let world = try StateWorld()
        try await world.connect()
        for round in 0..<4 {
            try await world.raw("FLUSHALL")
            let newer = Change(uid: "A", token: "a2", version: 3, ms: 150, type: .voip)
            var changes = Self.ofA + [Self.ofB]
            let comesBack = Bool.random(using: &random)
            if comesBack { changes.append(newer) }
            changes = (changes + changes.filter { _ in Bool.random(using: &random) }).shuffled(using: &random)
            var running: [(change: Change, runner: StateWorld.TaskRunner)] = []
            var isSwitched = false
            while !running.isEmpty || !changes.isEmpty {
                if running.count < 3, let next = changes.popLast() { running.append((next, runner(next))) }
                let index = Int.random(in: 0..<running.count, using: &random)
                let change = running[index].change
                if Int.random(in: 0..<10, using: &random) == 0 {
                    running[index].runner = runner(change)
                } else if try await world.step(&running[index].runner) != nil {
                    if change.uid == "B" { isSwitched = true }
                    running.remove(at: index)
                }
                if !isSwitched { continue }
                let pushed = try await world.pushed("A")
                #expect(!pushed.contains("a1"), "seed \(seed) round \(round)")
            }
            let wanted = comesBack ? ["a2", "b1"] : ["b1"]
            #expect(try await tokens("A", world) == wanted, "seed \(seed) round \(round)")
            #expect(try await world.pushed("A") == wanted, "seed \(seed) round \(round)")
            #expect(try await world.pushed("B") == ["a1"], "seed \(seed) round \(round)")
            for token in ["a3", "a4"] {
                #expect(try await owner(token, world)?.isBound != true, "seed \(seed) round \(round) \(token)")
            }
        }
        await world.end()
    }

    /// The server of A's keys lost what the bind did to them; the bind is made again.
    @Test func `a repeated bind ends the former owner's tokens again`() async throws {
        let world = try StateWorld()
        try await world.connect()
        for change in Self.ofA { try await world.change(change.uid, change.bind) }
        let before = try await world.recipient("A").recipient.tokens
        var first = runner(Self.ofB)
        while try await world.step(&first) == nil {}
        for token in before {
            try await world.raw(
                "HSET", "c:u:{\(StateWorld.app):A}", TokenText.field(device: token.device, token.record),
                TokenText.record(token))
        }
        let text = "1 \(StateKeys.version(1)) b 1 A@\(StateWorld.base + 1)"
        try await world.raw("SET", "c:o:{\(StateWorld.app):a2}", text)
        var again = StateWorld.TaskRunner(task: try #require(first.task.repetition))
        while try await world.step(&again) == nil {}
        #expect(try await tokens("A", world) == ["b1"])
        #expect(try await owner("a2", world)?.isBound == false)
        await world.end()
    }

    @Test func `what a user without tokens leaves expires, until a token is bound or a setting changes`() async throws {
        let world = try StateWorld()
        try await world.connect()
        func lives() async throws -> [Int64] {
            var lives: [Int64] = []
            for key in ["c:u", "c:s"] { lives.append(try await world.raw("TTL", "\(key):{im:A}") ?? -9) }
            return lives
        }
        var settings = UserState.SettingsChange()
        settings.showDetail = false
        try await world.change("A", .settings(settings))
        #expect(try await lives()[0] == -1)
        let bind = Self.ofA[0]
        try await world.change("A", bind.bind)
        try await world.change("A", .unbind(UserState.Unbinding(device: "phone", token: "a1", version: 1)))
        #expect(try await lives().allSatisfy { $0 > StateKeys.leftSeconds - 60 })
        try await world.raw("EXPIRE", "c:u:{im:A}", "100")
        try await world.change("A", .mute(conversation: "c", level: .blocked, untilMs: nil))
        #expect(try await lives().allSatisfy { $0 > StateKeys.leftSeconds - 60 }, "a change renews it")
        try await world.change("A", Change(uid: "A", token: "a1", version: 2, ms: 5).bind)
        #expect(try await lives() == [-1, -1])
        await world.end()
    }
}
