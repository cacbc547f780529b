// SPDX-License-Identifier: Apache-2.0
import EventLoop
import HTTP2
import Simulator
import Testing

@Suite(.timeLimit(.minutes(10))) struct SimulatedFaultTests {
    /// A simulator whose request to the token `bb…` meets `action`, and every other is accepted.
    private static func open(_ action: ScenarioAction) -> SimulatorConfiguration {
        var match = ScenarioRule.Match()
        match.tokenPrefix = Array("bb".utf8)
        var configuration = SimulatorConfiguration()
        configuration.ledger = .memory
        configuration.scenario = Scenario(rules: [ScenarioRule(match, action)])
        return configuration
    }

    private let plain = TestRequest(token: "aa01")
    private let struck = TestRequest(token: "bb01")

    @Test func anAnswerIsGivenAsWritten() async throws {
        var answer = ScenarioAnswer(410, "Unregistered", timestampMs: 1_700_000_000_000)
        answer.retryAfterSeconds = 3
        try await withSimulator(Self.open(.answer(answer))) { service, client, _ in
            let heard = await client.send(struck)
            #expect(heard.status == 410 && heard.retryAfter == "3")
            #expect(heard.body == Array("{\"reason\":\"Unregistered\",\"timestamp\":1700000000000}".utf8))
            #expect(await client.send(plain).retryAfter == nil)
            #expect(await service.entries.first?.status == 410)
        }
    }

    @Test func `Retry-After may be a date`() async throws {
        var answer = ScenarioAnswer(429, "TooManyRequests")
        (answer.retryAfterSeconds, answer.retryAfterIsDate) = (0, true)
        try await withSimulator(Self.open(.answer(answer))) { _, client, _ in
            let form = #/(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} 20\d\d \d\d:\d\d:\d\d GMT/#
            #expect(await client.send(struck).retryAfter?.wholeMatch(of: form) != nil)
        }
        #expect(HTTPResponse.date(seconds: 784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
    }

    @Test func aLateAnswerLetsOthersPass() async throws {
        var late = ScenarioAnswer()
        late.delayMs = 30
        try await withSimulator(Self.open(.answer(late))) { service, client, _ in
            let answers = await client.send([struck, plain, plain])
            #expect(answers.allSatisfy { $0.status == 200 })
            // Lines stand in the order of the answers.
            #expect(await service.entries.map(\.token) == ["aa01", "aa01", "bb01"])
            #expect(await service.entries.map(\.delayMs) == [0, 0, 30])
        }
    }

    @Test func aRefusedStreamIsProvablyUnprocessed() async throws {
        try await withSimulator(Self.open(.reset(.refusedStream))) { service, client, _ in
            let answers = await client.send([plain, struck])
            #expect(answers.map(\.end) == [.closed(.noError), .unprocessed(.refused)])
            let entry = await service.entries.first { $0.token == "bb01" }
            #expect(entry?.fault == "refuse_stream" && entry?.answered == false)
        }
    }

    @Test func aResetCarriesItsCode() async throws {
        try await withSimulator(Self.open(.reset(.enhanceYourCalm))) { service, client, _ in
            #expect(await client.send(struck).end == .closed(.enhanceYourCalm))
            #expect(await service.counters.faults == ["reset": 1])
        }
    }

    @Test(arguments: [
        (ScenarioAction.GoAwayLast.before, StreamEnd.closed(.noError), StreamEnd.unprocessed(.aboveGoAway)),
        (.this, .closed(.noError), .closed(.noError)),
    ])
    func aGoAwayNamesItsLastStream(
        last: ScenarioAction.GoAwayLast, first: StreamEnd, second: StreamEnd
    ) async throws {
        let action = ScenarioAction.goAway(last: last, code: .noError, reason: "Shutdown")
        try await withSimulator(Self.open(action)) { service, client, _ in
            let answers = await client.send([plain, struck, plain])
            // The third, which came in the same read, was never seen.
            #expect(await service.entries.map(\.token) == ["aa01", "bb01"])
            #expect(await service.counters.requests == 2)
            #expect(answers[0].end == first)
            #expect(answers[1].end == second)
            #expect(answers[2].end == .unprocessed(.aboveGoAway))
            let goAway = await client.goAways.first
            #expect(goAway?.debug == Array("{\"reason\":\"Shutdown\"}".utf8))
        }
    }

    @Test func aClosedConnectionLeavesItsRequestsUnknown() async throws {
        try await withSimulator(Self.open(.close)) { service, client, _ in
            #expect(await client.send(struck).end == .lost)
            #expect(await service.entries.first?.fault == "close")
            #expect(await service.counters.connectionsOpen == 0)
        }
    }

    @Test func aFrozenStreamIsNeverAnsweredButOthersAre() async throws {
        try await withSimulator(Self.open(.freezeStream)) { service, client, _ in
            await client.sendOnly(struck)
            #expect(await client.send(plain).status == 200)
            #expect(await service.entries.map(\.answered) == [false, true])
        }
    }

    @Test func aFrozenConnectionSaysNothingUntilItIsClosed() async throws {
        try await withSimulator(Self.open(.freezeConnection)) { service, client, _ in
            await client.sendOnly(struck)
            while await service.counters.faults["freeze"] == nil { await Task.yield() }
            async let answer = client.send(plain)
            await service.closeConnections()
            #expect(await answer.end == .lost)
            #expect(await service.entries.map(\.token) == ["bb01"])
        }
    }

    @Test func drippedAnswersArriveInTheEnd() async throws {
        try await withSimulator(Self.open(.drip(bytes: 7, everyMs: 1))) { _, client, _ in
            let answers = await client.send([struck, plain, plain])
            #expect(answers.allSatisfy { $0.status == 200 })
        }
    }

    @Test func aConnectionGoesAwayAfterItsShareOfRequests() async throws {
        var configuration = Self.open(.close)
        configuration.scenario = Scenario(goAwayAfterRequests: 3)
        try await withSimulator(configuration) { service, client, port in
            let answers = await client.send([plain, plain, plain, plain])
            #expect(answers.prefix(3).allSatisfy { $0.status == 200 })
            #expect(answers[3].end == .unprocessed(.aboveGoAway))
            // The server closes by itself soon after.
            while await service.counters.connectionsOpen > 0 { await Task.yield() }
            await client.close()
            try await client.connect(port: port, trusting: nil)
            #expect(await client.send(plain).status == 200)
        }
    }

    @Test func aDelayedAnswerAboveAGoAwayNeverComes() async throws {
        var late = ScenarioAnswer()
        late.delayMs = 30
        var configuration = Self.open(.close)
        let goAway = ScenarioAction.goAway(last: .none, code: .noError, reason: nil)
        configuration.scenario = Scenario(
            rules: configuration.scenario.rules.map { ScenarioRule($0.match, goAway) }
                + [ScenarioRule(ScenarioRule.Match(), .answer(late))])
        try await withSimulator(configuration) { service, client, _ in
            let answers = await client.send([plain, struck])
            #expect(answers.allSatisfy { $0.end == .unprocessed(.aboveGoAway) })
            await service.closeConnections()
            #expect(await service.entries.map(\.token) == ["bb01"])
        }
    }

    @Test func aGoAwayByCommandLetsTheRestFinish() async throws {
        var late = ScenarioAnswer()
        late.delayMs = 30
        try await withSimulator(Self.open(.answer(late))) { service, client, _ in
            async let answer = client.send(struck)
            while await service.counters.requests == 0 { await Task.yield() }
            await service.goAway(.noError, reason: "Shutdown")
            #expect(await answer.status == 200)
            #expect(await client.goAways.count == 1)
        }
    }
}
