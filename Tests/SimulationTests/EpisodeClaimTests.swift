// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Simulation

/// Each kind of claim of an episode holds in the log of a real run, and fails in a log that is false.
@Suite("Claims of episodes", .timeLimit(.minutes(5)))
struct EpisodeClaimTests {
    private static let names: Set<String> = [
        "a bad token", "a bind names the credentials", "a digest after quiet hours", "a revoke takes one off, once",
        "a Retry-After that is a date", "an event to a broadcast channel",
        "an older bind of the device changes nothing",
        "an SMS in place of a push", "bad events", "clear_on_read shows the lower number", "custom keys",
        "messages in order in a conversation", "no ack from a phone in the foreground",
        "one push of a device is in flight", "times of a message",
    ]

    private static func play(_ names: Set<String>, _ change: (inout AppSettings) -> Void) -> World.Episodes? {
        var plan = Plan(seed: 7, faults: [])
        var kit = AppSettings(id: Episode.app)
        kit.hasCredentialSets = true
        change(&kit)
        (plan.kit, plan.episodes, plan.boundarySeconds) = (kit, names, 20)
        return Simulation.evidence(of: plan)?.episodes
    }

    private static let usual = play(names) { ($0.clearsOnRead, $0.sendsDigests) = (true, true) }
    private static let braked = play(["a spike of dead tokens"]) { $0.removalsMinimum = 2 }

    @Test func `the claims hold in a log that is true`() throws {
        let episodes = try #require(Self.usual)
        #expect(episodes.violations.isEmpty, "\(episodes.violations)")
        #expect(Set(episodes.claims.map(\.name)) == Self.names)
        let braked = try #require(Self.braked)
        #expect(braked.violations.isEmpty && braked.claims.count == 1, "\(braked.violations)")
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let change: @Sendable (inout Observed) -> Void

        init(_ kind: String, _ change: @escaping @Sendable (inout Observed) -> Void) {
            testDescription = kind
            self.change = change
        }
    }

    @Test(arguments: rows) func `a claim of each kind fails in a log that is false`(row: Row) throws {
        let source = row.testDescription == "feedbacks" ? Self.braked : Self.usual
        var episodes = try #require(source)
        episodes.claims = episodes.claims.map { name, claims in
            (name, claims.filter { Mirror(reflecting: $0).children.first?.label == row.testDescription })
        }
        try #require(episodes.claims.contains { !$0.claims.isEmpty })
        #expect(episodes.violations.isEmpty)
        row.change(&episodes.observed)
        #expect(!episodes.violations.isEmpty)
    }

    private static func changePushes(
        _ change: @escaping @Sendable (inout Observed.Push) -> Void
    ) -> @Sendable (inout Observed) -> Void {
        { observed in for index in observed.pushes.indices { change(&observed.pushes[index]) } }
    }

    private static func changeOutcomes(
        _ change: @escaping @Sendable (inout Observed.Outcome) -> Void
    ) -> @Sendable (inout Observed) -> Void {
        { observed in for index in observed.outcomes.indices { change(&observed.outcomes[index]) } }
    }

    private static let rows = [
        Row("ends", changeOutcomes { $0.reason = "other" }),
        Row("accepted") { $0.pushes += $0.pushes },
        Row("counts", changePushes { $0.badge = 77 }),
        Row("rises", changePushes { $0.badge = $0.badge.map { 7 - $0 } }),
        Row("has", changePushes { $0.payload = .object([:]) }),
        Row("custom", changePushes { $0.payload = .object([:]) }),
        Row("header", changePushes { $0.expiration = 1 }),
        Row("came", changePushes { $0.atNanos += 60_000_000_000 }),
        Row("attempts", changeOutcomes { $0.attempts = 9 }),
        Row("result") { observed in
            for id in observed.results.keys { observed.results[id]?.outcome = "other" }
        },
        Row("delivery") { $0.deliveries += $0.deliveries },
        Row("sms") { $0.sms = [] },
        Row("feedback") { $0.feedback = [] },
        Row("feedbacks") { $0.feedback = [] },
        Row("deadLetter") { $0.letters = [] },
        Row("shows", changePushes { if $0.body == nil { $0.badge = 77 } }),
        Row("apart", changePushes { $0.atNanos = 9_000_000_000 }),
        Row("order") { $0.pushes.reverse() },
        Row("digest", changePushes { $0.body = "3" }),
        Row("sameCollapse", changePushes { $0.collapseID = $0.pid }),
        Row("credential", changeOutcomes { $0.credential = "main" }),
        Row("broadcasts", changePushes { $0.expiration = 86_400 }),
    ]
}
