// SPDX-License-Identifier: Apache-2.0
import APNsProtocol
import HTTP2
import Simulator
import Testing

@Suite struct ScenarioTests {
    private static func subject(
        _ token: String = "aa00", topic: String = "com.example.im", type: PushType = .alert, atMs: Int64 = 0
    ) -> Scenario.Subject {
        Scenario.Subject(
            token: Array(token.utf8)[...], topic: Array(topic.utf8)[...], pushType: type, atMs: atMs)
    }

    private static func read(_ text: String) throws -> Scenario { try Scenario(json: Array(text.utf8)) }

    @Test func theFirstRuleThatMatchesDecides() throws {
        var scenario = try Self.read(
            """
            {"rules": [
              {"match": {"token": "dead"}, "answer": {"status": 410, "reason": "Unregistered", "timestamp": 5}},
              {"match": {"topic": "com.example.im.voip"}, "fault": {"kind": "close"}},
              {"match": {"push_type": "background"}, "fault": {"kind": "refuse_stream"}},
              {"match": {"after_s": 1.5, "until_s": 2}, "fault": {"kind": "reset", "code": "CANCEL"}},
              {"match": {"token": "dead"}, "fault": {"kind": "close"}}
            ]}
            """)
        #expect(
            scenario.action(for: Self.subject("dead01"))
                == .answer(ScenarioAnswer(410, "Unregistered", timestampMs: 5)))
        #expect(scenario.action(for: Self.subject("dea")) == nil)
        #expect(scenario.action(for: Self.subject(topic: "com.example.im.voip")) == .close)
        #expect(scenario.action(for: Self.subject(type: .background)) == .reset(.refusedStream))
        #expect(scenario.action(for: Self.subject(atMs: 1499)) == nil)
        #expect(scenario.action(for: Self.subject(atMs: 1500)) == .reset(.cancel))
        #expect(scenario.action(for: Self.subject(atMs: 2000)) == nil)
    }

    @Test func skipAndCountCutAWindow() throws {
        var scenario = try Self.read(
            #"{"rules": [{"match": {"skip": 2, "count": 3}, "fault": {"kind": "close"}}]}"#)
        let struck = (0..<8).map { _ in scenario.action(for: Self.subject()) != nil }
        #expect(struck == [false, false, true, true, true, false, false, false])
    }

    @Test func aShareIsRepeatableAndAboutRight() throws {
        let text = #"{"seed": 42, "rules": [{"match": {"share": 0.1}, "fault": {"kind": "close"}}]}"#
        var (one, two) = (try Self.read(text), try Self.read(text))
        let first = (0..<10_000).map { _ in one.action(for: Self.subject()) != nil }
        let second = (0..<10_000).map { _ in two.action(for: Self.subject()) != nil }
        #expect(first == second)
        #expect((800...1200).contains(first.count { $0 }))
    }

    @Test func everyActionIsRead() throws {
        let scenario = try Self.read(
            """
            {"goaway_after_requests": 9, "settings": [{"after_s": 2, "max_concurrent_streams": 5}, {"after_s": 1}],
             "rules": [
              {"answer": {"status": 429, "reason": "TooManyRequests", "retry_after": 2,
               "retry_after_date": true, "delay_ms": 40}},
              {"fault": {"kind": "reset", "code": 11}},
              {"fault": {"kind": "goaway", "last": "none", "code": "ENHANCE_YOUR_CALM", "reason": "Shutdown"}},
              {"fault": {"kind": "goaway"}}, {"fault": {"kind": "freeze"}},
              {"fault": {"kind": "freeze", "scope": "stream"}}, {"fault": {"kind": "drip", "bytes": 3, "every_ms": 9}}
            ]}
            """)
        var slow = ScenarioAnswer(429, "TooManyRequests")
        slow.retryAfterSeconds = 2
        slow.retryAfterIsDate = true
        slow.delayMs = 40
        #expect(
            scenario.rules.map(\.action) == [
                .answer(slow), .reset(.enhanceYourCalm),
                .goAway(last: .none, code: .enhanceYourCalm, reason: "Shutdown"),
                .goAway(last: .before, code: .noError, reason: nil), .freezeConnection, .freezeStream,
                .drip(bytes: 3, everyMs: 9),
            ])
        #expect(scenario.goAwayAfterRequests == 9)
        #expect(scenario.settings.map(\.afterMs) == [1000, 2000])
    }

    @Test func everyProblemOfAFileIsReportedWithItsPlace() {
        let text = """
            {"sede": 1, "rules": [
              {"match": {"share": 2, "push_type": "loud"}, "answer": {"status": 20}},
              {"fault": {"kind": "explode"}}, {"match": {}}, {"fault": {"kind": "reset", "code": "OUCH"}}
            ], "settings": 3}
            """
        let fault = #expect(throws: ScenarioFault.self) { try Self.read(text) }
        let problems = fault?.problems ?? []
        for place in [
            "scenario.sede", "rules[0].match.share", "rules[0].match.push_type", "rules[0].answer.status",
            "rules[1].fault.kind", "rules[2]:", "rules[3].fault.code", "scenario.settings",
        ] {
            #expect(problems.contains { $0.hasPrefix(place) }, "\(place)")
        }
        #expect(problems.count == 8)
        #expect(throws: ScenarioFault.self) { try Self.read("{") }
    }

    @Test(
        arguments: [
            (#"{"a\nrules[0]: fine": 1}"#, #"scenario.a\nrules[0]: fine: unknown key"#),
            (#"{"rules": [{"fault": {"kind": "bytes", "hex": "+1"}}]}"#, "rules[0].fault.hex: "),
            (#"{"rules": [{"answer": {"delay_ms": 18446744073710}}]}"#, "rules[0].answer.delay_ms: "),
            (#"{"connection": {"rtt_ms": 9223372036854775807}}"#, "connection.rtt_ms: "),
            (#"{"rules": [{"fault": {"kind": "drip", "every_ms": 1000000000000}}]}"#, "rules[0].fault.every_ms: "),
            (
                #"{"rules": [{"fault": {"kind": "goaway", "reason": "\#(String(repeating: "r", count: 1025))"}}]}"#,
                "rules[0].fault.reason: "
            ),
        ])
    func anUnsupportedScenarioIsReportedInOneLine(text: String, beginning: String) throws {
        let fault = #expect(throws: ScenarioFault.self) { try Self.read(text) }
        let problems = try #require(fault?.problems)
        #expect(problems.count == 1 && problems.allSatisfy { $0.hasPrefix(beginning) }, "\(problems)")
    }

    @Test func atMostAHundredProblemsAreReported() throws {
        let rules = [String](repeating: "0", count: 5000).joined(separator: ",")
        let fault = #expect(throws: ScenarioFault.self) { try Self.read("{\"rules\": [\(rules)]}") }
        #expect(fault?.problems.count == 101)
        #expect(fault?.problems.last == "scenario: 9900 more problems")
    }
}
