// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@testable import Worker

/// The machine of bind and unbind, without Redis: a row is a list of answers and the steps that they lead through.
struct UserStateTaskTests {
    private static let version = StateKeys.version(3)

    private static func bind() -> UserStateTask {
        let token = TokenRecord(hex: "aa", environment: .production, topic: "t", type: .alert, boundMs: 0)
        return UserStateTask(
            app: "im", sentMs: 0, nowMs: 0,
            state: UserState(uid: "u", change: .bind(.init(device: "d", token: token, version: 5))))
    }

    private static func unbind() -> UserStateTask {
        UserStateTask(
            app: "im", sentMs: 0, nowMs: 0,
            state: UserState(uid: "u", change: .unbind(.init(device: "d", token: "aa", version: 5))))
    }

    private static func taking(
        _ users: [String], _ then: UserStateTask.Taking.Then, atMs: Int64 = 0, device: String = "",
        ended: [UserStateTask.EndedToken] = []
    ) -> UserStateTask.Taking {
        UserStateTask.Taking(
            users: users, switched: UserStateTask.Switch(atMs: atMs, device: device, ended: ended), then: then)
    }

    private static func ended(_ uid: String) -> UserStateTask.EndedToken {
        UserStateTask.EndedToken(uid: uid, token: "cc", version: 3)
    }

    private func run(_ task: UserStateTask, _ answers: [StepAnswer]) -> ([UserStateTask.Step], StateOutcome?) {
        var task = task
        var steps: [UserStateTask.Step] = []
        for answer in answers {
            switch task.move(answer) {
            case .waiting, .later: break
            case .next: steps.append(task.step)
            case .done(let outcome): return (steps, outcome)
            }
        }
        return (steps, nil)
    }

    @Test(
        arguments: [
            ([.init(code: 1), .init(code: 1), .init(code: 1)], [.add, .settle(repeated: false)], .applied(.none)),
            (
                [.init(code: 1, texts: ["a", "b"]), .init(code: 1), .init(code: 0), .init(code: 1), .init(code: 1)],
                [.take(taking(["a", "b"], .add)), .take(taking(["b"], .add)), .add, .settle(repeated: false)],
                .applied(.none)
            ),
            (
                [
                    .init(code: 1, texts: ["a"]), .init(code: 1, texts: ["cc", version]), .init(code: 1),
                    .init(code: 2),
                    .init(code: 1), .init(code: 1),
                ],
                [
                    .take(taking(["a"], .add)), .endTokens(taking(["a"], .add), [ended("a")]),
                    .take(taking(["a"], .add, ended: [ended("a")])), .add, .settle(repeated: false),
                ], .applied(.none)
            ),
            (
                [.init(code: 1), .init(code: 3, texts: ["9"]), .init(code: 1), .init(code: 1)],
                [.add, .endOwn(atMs: 9), .dropOwn(.ignored(.unbound))], .ignored(.unbound)
            ),
            (
                [.init(code: 0, texts: ["9"]), .init(code: 0)],
                [.take(taking(["u"], .done(.ignored(.stale)), atMs: 9, device: "1:d"))], .ignored(.stale)
            ),
            (
                [.init(code: 1), .init(code: 1, texts: ["bb", version]), .init(code: 1), .init(code: 1)],
                [.add, .retireReplaced(token: "bb", version: 3, repeated: false), .settle(repeated: false)],
                .applied(.none)
            ),
            ([.init(code: 1), .init(code: 2), .init(code: 1)], [.add, .settle(repeated: true)], .repeated),
            (
                [.init(code: 1), .init(code: 1), .init(code: 0), .init(code: 1)],
                [.add, .settle(repeated: false), .dropOwn(.ignored(.stale))], .ignored(.stale)
            ),
            ([.init(code: 0), .init(code: 0)], [.dropOwn(.ignored(.stale))], .ignored(.stale)),
            (
                [.init(code: 2, texts: ["a"]), .init(code: 1), .init(code: 0)],
                [.take(taking(["a"], .dropOwn(.ignored(.unbound)))), .dropOwn(.ignored(.unbound))], .ignored(.unbound)
            ),
            ([.init(code: -1)], [], .ignored(.unusable)),
        ] as [([StepAnswer], [UserStateTask.Step], StateOutcome)])
    func aBindWalksItsSteps(answers: [StepAnswer], steps: [UserStateTask.Step], outcome: StateOutcome) {
        let (walked, ended) = run(Self.bind(), answers)
        #expect(walked == steps && ended == outcome)
    }

    @Test(
        arguments: [
            ([.init(code: 1), .init(code: 1)], [.dropOwn(.applied(.none))], .applied(.none)),
            ([.init(code: 0), .init(code: 0)], [.dropOwn(.ignored(.notOwner))], .ignored(.notOwner)),
            ([.init(code: 2)], [], .ignored(.early)),
            ([.init(code: 9)], [], .ignored(.unusable)),
        ] as [([StepAnswer], [UserStateTask.Step], StateOutcome)])
    func anUnbindWalksItsSteps(answers: [StepAnswer], steps: [UserStateTask.Step], outcome: StateOutcome) {
        let (walked, ended) = run(Self.unbind(), answers)
        #expect(walked == steps && ended == outcome)
    }

    @Test(arguments: [Int64.min, -1, 0, 1, 9_007_199_254_740_993, .max])
    func versionsAreTextThatSortsAndReadsBack(version: Int64) {
        let text = StateKeys.version(version)
        #expect(text.utf8.count == 20 && StateKeys.version(of: text) == version)
        if version < .max { #expect(text < StateKeys.version(version + 1)) }
    }

    @Test func brokenRecordsAreNoTokens() {
        let record = TokenRecord(
            hex: "aabb", environment: .sandbox, topic: "t", type: .voip, zone: "Asia/Tokyo", boundMs: 12)
        let field = Array(TokenText.field(device: "d", record).utf8)
        let words = TokenText.words(record)
        #expect(words == ["=", "=", "=", "10:Asia/Tokyo"])
        let text = Array((TokenText.head(record, version: 4) + "---" + words[3]).utf8)
        func read(_ field: [UInt8], _ text: [UInt8]) -> BoundToken? {
            field.withUnsafeBytes { field in text.withUnsafeBytes { TokenText.token(field: field, record: $0) } }
        }
        #expect(read(field, text) == BoundToken(device: "d", record: record, version: 4))
        // A newer worker's record may go on; a cut one never traps.
        #expect(read(field, text + Array("7:another".utf8))?.record == record)
        for cut in 0..<text.count { _ = read(field, Array(text[..<cut])) }
        for cut in 0..<field.count { #expect(read(Array(field[..<cut]), text) == nil) }
        #expect(read(field, Array("2".utf8) + text.dropFirst()) == nil)
    }
}
