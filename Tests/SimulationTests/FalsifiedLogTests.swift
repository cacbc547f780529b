// SPDX-License-Identifier: Apache-2.0
import Processes
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
        guard let folder = try? TemporaryFolder(), let simulation = try? Simulation(folder: folder.path) else {
            return nil
        }
        var plan = Plan(seed: 3, faults: [])
        plan.apps = [AppSettings(id: "im")]
        plan.kinds = [.groups, .reads, .presence, .mutes, .options]
        plan.usersPerApp = 4
        plan.messages = 60
        return try? simulation.evidence(plan)
    }()

    private static func violations(_ evidence: World.Evidence) -> [Violation] {
        var judge = Judge(evidence.sources, observed: evidence.observed, allowance: evidence.allowance)
        return judge.run()
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
        Row("a change is not taken", "results") { evidence in
            guard let state = evidence.sources.states.first(where: { $0.tokenType == .alert }) else { return false }
            evidence.observed.results[state.eventID]?.outcome = "ignored"
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
