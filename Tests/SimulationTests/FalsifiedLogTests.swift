// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Simulation

/// The judge finds what is false in the log of a real run, and nothing in the log itself.
@Suite("Falsified logs of a simulation", .timeLimit(.minutes(5)))
struct FalsifiedLogTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let rule: String
        /// Returns whether the log has what is to be changed.
        let change: @Sendable (inout World.Evidence) -> Bool

        init(_ name: String, _ rule: String, _ change: @escaping @Sendable (inout World.Evidence) -> Bool) {
            testDescription = name
            self.rule = rule
            self.change = change
        }
    }

    private static let evidence: World.Evidence? = {
        var plan = Plan(seed: 3, faults: [])
        plan.apps = [AppSettings(id: "im")]
        plan.kinds = [.groups, .reads, .presence, .mutes, .options]
        plan.usersPerApp = 4
        plan.messages = 60
        return Simulation.evidence(of: plan)
    }()

    private static func violations(_ evidence: World.Evidence) -> [Violation] {
        var judge = Judge(evidence.sources, observed: evidence.observed, allowance: evidence.allowance)
        return judge.run()
    }

    private static let episodes: World.Episodes? = {
        var plan = Plan(seed: 7, faults: [])
        plan.kit = AppSettings(id: Episode.app)
        return Simulation.evidence(of: plan)?.episodes
    }()

    @Test func `the claims of episodes hold in a log that is true`() throws {
        let episodes = try #require(Self.episodes)
        #expect(episodes.violations.isEmpty, "\(episodes.violations)")
        #expect(episodes.claims.count > 5)
    }

    @Test(arguments: ["an outcome", "a reason", "a number", "a second push", "a text"])
    func `what is false in an episode is found`(what: String) throws {
        var episodes = try #require(Self.episodes)
        // Claims name some of the records only.
        let isFound = episodes.observed.outcomes.indices.contains { index in
            var changed = episodes
            let outcome = changed.observed.outcomes[index]
            guard outcome.app == Episode.app, outcome.verdict == "accepted",
                let push = changed.observed.pushes.firstIndex(where: { $0.pid == outcome.pid && $0.status == 200 })
            else { return false }
            switch what {
            case "an outcome": changed.observed.outcomes.remove(at: index)
            case "a reason": changed.observed.outcomes[index].reason = "other"
            case "a number": changed.observed.pushes[push].badge = 77
            case "a second push": changed.observed.pushes.append(changed.observed.pushes[push])
            default: changed.observed.pushes[push].payload = .object([:])
            }
            return !changed.violations.isEmpty
        }
        #expect(isFound)
        episodes.observed.outcomes = []
        #expect(!episodes.violations.isEmpty)
    }

    /// A run with an app that merges alerts.
    private static let merging: World.Evidence? = {
        var plan = Plan(seed: 5, faults: [])
        var app = AppSettings(id: "im")
        app.burstTenths = 20
        (plan.apps, plan.kinds, plan.kit) = ([app], [], nil)
        (plan.usersPerApp, plan.messages) = (2, 80)
        return Simulation.evidence(of: plan)
    }()

    @Test(arguments: [-1, 1]) func `a wrong number in a merged alert is found`(more: Int64) throws {
        let evidence = try #require(Self.merging)
        #expect(Self.violations(evidence).isEmpty)
        let isFound = evidence.observed.pushes.indices.contains { index in
            var changed = evidence
            guard let body = changed.observed.pushes[index].body, let number = Int64(body.prefix { $0.isNumber }),
                number > 2
            else { return false }
            changed.observed.pushes[index].body = "\(number + more)" + body.drop { $0.isNumber }
            return Self.violations(changed).contains { $0.rule == "the number" }
        }
        #expect(isFound)
    }

    @Test func `a log that is true breaks no rule`() throws {
        #expect(Self.violations(try #require(Self.evidence)).isEmpty)
    }

    @Test(arguments: rows) func `what is false in a log is found`(row: Row) throws {
        var evidence = try #require(Self.evidence)
        try #require(row.change(&evidence), "the log has nothing to change")
        #expect(Self.violations(evidence).contains { $0.rule == row.rule })
    }

    private static let rows = [
        Row("an outcome is removed", "one final outcome") { evidence in
            guard let index = evidence.accepted() else { return false }
            evidence.observed.outcomes.remove(at: index)
            return true
        },
        Row("an outcome is written twice", "one final outcome") { evidence in
            guard let index = evidence.accepted() else { return false }
            evidence.observed.outcomes.append(evidence.observed.outcomes[index])
            return true
        },
        Row("a reason is another one", "the reason") { evidence in
            guard let index = evidence.accepted() else { return false }
            evidence.observed.outcomes[index].reason = "forced"
            return true
        },
        Row("a push is added", "no push twice") { evidence in
            guard let index = evidence.alert() else { return false }
            evidence.observed.pushes.append(evidence.observed.pushes[index])
            return true
        },
        Row("a push is removed", "the reason") { evidence in
            guard let index = evidence.alert() else { return false }
            evidence.observed.pushes.remove(at: index)
            return true
        },
        Row("a number is one more", "the number") { evidence in
            guard let index = evidence.alert() else { return false }
            evidence.observed.pushes[index].badge = (evidence.observed.pushes[index].badge ?? 0) + 7
            return true
        },
        Row("a text is another one", "the payload") { evidence in
            guard let index = evidence.alert(), case .object(var members)? = evidence.observed.pushes[index].payload,
                case .object(var aps)? = members["aps"]
            else { return false }
            aps["alert"] = .object(["body": .text("N: something")])
            members["aps"] = .object(aps)
            evidence.observed.pushes[index].payload = .object(members)
            return true
        },
        Row("a push goes to another user", "no push to another user") { evidence in
            guard let index = evidence.alert() else { return false }
            let push = evidence.observed.pushes[index]
            let owner = evidence.sources.states.first { $0.token == push.token }?.uid
            let event = evidence.sources.sent.first { $0.messageID == push.messageID }
            let other = evidence.sources.states.first {
                $0.tokenType == .alert && $0.uid != owner && event?.recipients.contains($0.uid) == false
            }
            guard let token = other?.token else { return false }
            evidence.observed.pushes[index].token = token
            return true
        },
        Row("an order is swapped", "the order of a conversation") { evidence in
            let pushes = evidence.observed.pushes
            for (index, push) in pushes.enumerated() where push.status == 200 && push.type == "alert" {
                let event = evidence.sources.sent.first { $0.messageID == push.messageID }
                let later = pushes[(index + 1)...].firstIndex { other in
                    other.token == push.token && other.type == "alert" && other.status == 200
                        && evidence.sources.sent.first { $0.messageID == other.messageID }?.conversation
                            == event?.conversation
                        && other.messageID != push.messageID
                }
                guard let later else { continue }
                evidence.observed.pushes.remove(at: index)
                evidence.observed.pushes.insert(push, at: later)
                return true
            }
            return false
        },
        Row("a number of the statistics is another one", "the statistics equal the results") { evidence in
            evidence.observed.counted?["im accepted", default: 0] += 1
            return evidence.observed.counted != nil
        },
        Row("a push with a request is not counted as sent", "the lists of the statistics") { evidence in
            let key = "im type alert s"
            guard let number = evidence.observed.numbers[key], number > 0 else { return false }
            evidence.observed.numbers[key] = number - 1
            return true
        },
        Row("a digest is not counted", "the statistics equal the results") { evidence in
            guard let index = evidence.accepted() else { return false }
            var digest = evidence.observed.outcomes[index]
            digest.eventID = "digest-1"
            evidence.observed.outcomes.append(digest)
            return true
        },
        Row("a change is not taken", "results") { evidence in
            guard let state = evidence.sources.states.first(where: { $0.tokenType == .alert }) else { return false }
            evidence.observed.results[state.eventID]?.outcome = "ignored"
            return true
        },
        Row("a status is another one", "the record") { evidence in
            guard let index = evidence.accepted() else { return false }
            evidence.observed.outcomes[index].status = 201
            return true
        },
        Row("the number of a record is another one", "the record") { evidence in
            guard let index = evidence.accepted() else { return false }
            evidence.observed.outcomes[index].badge = 66
            return true
        },
        Row("a record names another message", "the record") { evidence in
            guard let index = evidence.accepted() else { return false }
            evidence.observed.outcomes[index].messageID = "m0"
            return true
        },
        Row("a try has another id", "push ids") { evidence in
            guard let index = evidence.alert() else { return false }
            var push = evidence.observed.pushes[index]
            push.pid = "other"
            evidence.observed.pushes.append(push)
            return true
        },
        Row("a push is repeated after planned ends", "no push twice") { evidence in
            guard let index = evidence.alert() else { return false }
            (evidence.allowance.mayRepeat, evidence.allowance.isDrainedWell) = (true, true)
            evidence.observed.pushes.append(evidence.observed.pushes[index])
            return true
        },
        Row("two pushes of a device are in flight", "one push in flight") { evidence in
            guard let index = evidence.alert() else { return false }
            evidence.allowance.hadOneShard = true
            var push = evidence.observed.pushes[index]
            (push.pid, push.delayMs) = ("other", 3000)
            push.atNanos += 1_000_000_000
            evidence.observed.pushes.insert(push, at: index + 1)
            return true
        },
        Row("an SMS is asked for", "SMS") { evidence in
            guard let event = evidence.sources.sent.first(where: { !$0.push.wantsSMS && !$0.recipients.isEmpty }) else {
                return false
            }
            evidence.observed.sms.append(
                .init(
                    atNanos: event.atNanos, app: "im", eventID: event.eventID, uid: event.recipients[0],
                    reason: "no_token"))
            return true
        },
    ]
}

extension World.Evidence {
    /// An accepted alert.
    fileprivate func accepted() -> Int? {
        observed.outcomes.firstIndex { outcome in
            outcome.verdict == "accepted" && outcome.reason == "ok"
                && sources.sent.contains { $0.eventID == outcome.eventID && $0.kind == .message && !$0.push.isSilent }
        }
    }

    /// A request for a message's alert, the only one of it, with a number.
    fileprivate func alert() -> Int? {
        observed.pushes.firstIndex { push in
            push.status == 200 && push.type == "alert" && push.badge != nil
                && observed.pushes.count(where: { $0.pid == push.pid }) == 1
                && sources.sent.contains { $0.messageID == push.messageID && $0.kind == .message && !$0.isGroup }
        }
    }
}
