// SPDX-License-Identifier: Apache-2.0
import PushCore
import Support
import Testing

@testable import Worker

/// The badge's law through the whole decision: mutes, forced pushes, vetoes and uncounted messages, with reads and
/// revokes known or not yet known when each message is decided.
@Suite(.timeLimit(.minutes(10)))
struct DecidedBadgeTests {
    /// How a message is meant; conversation `a` is muted by the user.
    private enum Kind: CaseIterable {
        case plain, forced, mention, vetoed, uncounted, silent

        func counts(in conversation: String) -> Bool {
            switch self {
            case .plain, .mention, .silent: conversation == "b"
            case .forced: true
            case .vetoed, .uncounted: false
            }
        }

        func apply(to message: inout Message) {
            switch self {
            case .plain: break
            case .forced: message.push.force = .init(mode: .all)
            case .mention: message.mention = .init(all: true)
            case .vetoed: message.push.enabled = false
            case .uncounted: message.push.badge = false
            case .silent: message.push.silent = true
            }
        }
    }

    private static let policy = AppPolicy(id: StateWorld.app, topic: "t")
    private struct NoZones: ZoneTable {
        func offset(of zone: String, at ms: Int64) -> Int? { 0 }
    }

    /// 40 seeds, 3 worlds each, in 3 orders with repeats.
    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func anyOrderWithRepeatsGivesTheSameBadge(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let world = try StateWorld()
        try await world.connect()
        for round in 0..<3 {
            let events = BadgeLawTests.events(&random)
            var kinds: [String: Kind] = [:]
            for case .message(let id, _, _, _) in events {
                kinds[id] = Kind.allCases.randomElement(using: &random)
            }
            let counted = events.filter { event in
                guard case .message(let id, let conversation, _, _) = event else { return true }
                return kinds[id]?.counts(in: conversation) ?? false
            }
            let expected = NaiveBadge(counted).value
            for order in 0..<3 {
                let uid = "u\(round)-\(order)"
                try await world.change(uid, .mute(conversation: "a", level: .blocked, untilMs: nil))
                let again = events.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }
                let told = (events + again).shuffled(using: &random)
                for event in told { try await apply(event, kinds, to: uid, in: world) }
                #expect(
                    try await world.badge(uid) == expected,
                    "seed \(seed) order \(told) kinds \(kinds)")
            }
        }
        await world.end()
    }

    /// As the worker does it: reads, decides, claims.
    private func apply(
        _ event: BadgeEvent, _ kinds: [String: Kind], to uid: String, in world: StateWorld
    ) async throws {
        guard case .message(let id, let conversation, let sent, let seq) = event else {
            return try await BadgeLawTests.apply(event, to: uid, in: world)
        }
        var message = Message(
            msgID: id, serverSeq: seq, expireAtMs: .max, conversation: .init(id: conversation, type: .group),
            from: .init(uid: "sender"), to: .init(uids: [uid]))
        kinds[id]?.apply(to: &message)
        let read = try await world.recipient(uid, conversation: conversation)
        let decision = decide(
            message, sentMs: sent, for: read.recipient, policy: Self.policy, zones: NoZones(),
            now: StateWorld.base + 1000)
        _ = try await world.claim(
            .message(uid, id, conversation, sent: sent, seq: seq, counted: decision.counted))
    }
}
