// SPDX-License-Identifier: Apache-2.0
import APNsProtocol
import Crypto
import EventLoop
import HTTP2
import JSON
import Simulator
import Support
import Testing

/// What `SimulatedFaultTests` leave: terms of connections, faults at their start, bodies, frames.
@Suite(.timeLimit(.minutes(10))) struct HostileTests {
    private static func open(_ json: String) throws -> SimulatorConfiguration {
        var configuration = SimulatorConfiguration()
        configuration.ledger = .memory
        configuration.scenario = try Scenario(json: Array(json.utf8))
        return configuration
    }

    private let plain = TestRequest(token: "aa01")

    @Test func theManualNamesEveryKey() throws {
        let manual = try Cases.text("../../Config/simulator.md")
        for section in ScenarioManual.all {
            if section.title.contains("fault "), let kind = section.title.split(separator: " ").last {
                #expect(manual.contains("`\(kind)`"), "\(section.title)")
            }
            for key in section.keys {
                let forms = ["`\(key.name)`", "{\(key.name),", ", \(key.name)}", "{\(key.name)}"]
                #expect(forms.contains { manual.contains($0) }, "\(section.title): \(key.name)")
            }
        }
    }

    @Test func everyScenarioOfTheManualIsSound() throws {
        _ = try Scenario(json: Array(Cases.text("../../Config/hostile.json").utf8))
        let manual = try Cases.text("../../Config/simulator.md")
        var found = 0
        for line in manual.split(separator: "\n") where line.hasPrefix("| ") {
            guard let text = line.split(separator: "`").first(where: { $0.hasPrefix("{\"") }) else { continue }
            #expect(throws: Never.self, "\(text)") { try Scenario(json: Array(text.utf8)) }
            found += 1
        }
        #expect(found == 13)
    }

    @Test func everyTakesEachSoManyth() throws {
        var scenario = try Scenario(
            json: Array(
                #"{"rules": [{"match": {"every": 3, "skip": 1, "count": 1}, "fault": {"kind": "close"}}]}"#.utf8))
        let subject = Scenario.Subject(token: [], topic: [], pushType: .alert, atMs: 0)
        let struck = (1...9).filter { _ in scenario.action(for: subject) != nil }
        #expect(struck == [6])
    }

    @Test(arguments: [
        (#""status": 400, "reason": "BadTopic", "split_bytes": 3"#, #"{"reason":"BadTopic"}"#),
        (#""status": 500, "body": "<html>""#, "<html>"), (#""status": 503, "body": """#, ""),
        (#""body": "surprise""#, "surprise"),
    ])
    func bodiesComeAsWritten(answer: String, body: String) async throws {
        try await withSimulator(Self.open(#"{"rules": [{"answer": {\#(answer)}}]}"#)) { _, client, _ in
            let heard = await client.send(plain)
            #expect(String(decoding: heard.body, as: UTF8.self) == body)
            #expect(heard.end == .closed(.noError))
        }
    }

    @Test func aBodyIsPaddedToItsSize() async throws {
        let json = #"{"rules": [{"answer": {"status": 400, "reason": "BadTopic", "body_bytes": 40000}}]}"#
        try await withSimulator(Self.open(json)) { _, client, _ in
            let body = await client.send(plain).body
            #expect(abs(body.count - 40_000) <= 2)
            let read = try JSONTree(parsing: body)
            #expect(read["reason"] == .string("BadTopic"))
        }
    }

    @Test(arguments: ["record", "reset"]) func aConnectionBreaksOff(how: String) async throws {
        var configuration = try Self.open(
            #"{"rules": [{"match": {"token": "bb"}, "fault": {"kind": "close", "how": "\#(how)"}}]}"#)
        configuration.certificate = try MintedCertificate()
        try await withSimulator(configuration) { service, client, _ in
            #expect(await client.send(plain).status == 200)
            #expect(await client.send(TestRequest(token: "bb01")).end == .lost)
            #expect(await service.counters.faults == ["break": 1])
        }
    }

    @Test func twoGoAwaysNameTheLastStreamInTheEnd() async throws {
        let json = #"""
            {"rules": [{"match": {"token": "bb"}, "fault": {"kind": "goaway", "last": "this", "twice": true, "reason": "A\"B"}}]}
            """#
        try await withSimulator(Self.open(json)) { _, client, _ in
            let answers = await client.send([plain, TestRequest(token: "bb01")])
            #expect(answers.allSatisfy { $0.status == 200 })
            let goAways = await client.goAways
            #expect(goAways.map(\.lastStreamID) == [.max, 3])
            #expect(goAways.last.map { String(decoding: $0.debug, as: UTF8.self) } == #"{"reason":"A\"B"}"#)
        }
    }

    @Test(arguments: ["settings", "ping"]) func aFloodIsFollowedByTheAnswer(frame: String) async throws {
        let json = #"{"rules": [{"fault": {"kind": "flood", "frame": "\#(frame)", "count": 20}}]}"#
        try await withSimulator(Self.open(json)) { service, client, _ in
            #expect(await client.send(plain).status == 200)
            #expect(await service.counters.faults == ["flood": 1])
        }
    }

    @Test func rawBytesTravelAmongTheFrames() async throws {
        // A PING of eight zeros, then an unknown frame type, which a client must ignore (RFC 9113 section 4.1).
        let hex = "000008 06 00 00000000 0000000000000000 000001 FA 00 00000000 00"
        let json = #"{"rules": [{"fault": {"kind": "bytes", "hex": "\#(hex)"}}]}"#
        try await withSimulator(Self.open(json)) { _, client, _ in
            #expect(await client.send([plain, plain]).allSatisfy { $0.status == 200 })
        }
    }

    @Test func aRoundTripDelaysEveryAnswer() async throws {
        let json = #"{"connection": {"rtt_ms": 40}}"#
        try await withSimulator(Self.open(json)) { _, client, _ in
            let before = ContinuousClock.now
            #expect(await client.send(plain).status == 200)
            // Lower bounds hold on any machine, however loaded.
            #expect(ContinuousClock.now - before >= .milliseconds(39))
        }
    }

    @Test func connectionTermsAreAnnounced() async throws {
        let json = #"{"connection": {"streams": 7, "header_table": 0}}"#
        try await withSimulator(Self.open(json)) { service, client, _ in
            #expect(await client.streamsMax == 7)
            #expect(await client.send([plain, plain]).allSatisfy { $0.status == 200 })
            await client.close()
            while await service.counters.connectionsOpen > 0 { await Task.yield() }
            #expect(await service.counters.headerTablePeak == 0)
        }
    }

    @Test(arguments: ["connection", "key"]) func aTokenThatComesTooSoonIsThrottled(scope: String) async throws {
        let key = try PrivateKey.generate()
        var configuration = try Self.open(#"{"connection": {"token_throttle": {"scope": "\#(scope)", "min_s": 600}}}"#)
        configuration.keys = [
            ProviderKey(keyID: "KEY1234567", teamID: "TEAM123456", publicKey: try key.publicKey())
        ]
        try await withSimulator(configuration) { service, client, port in
            let now = Loop.wallMs() / 1000
            let first = TestRequest(token: "aa01", jwt: try TestToken.make(key, issuedAt: now - 100))
            let second = TestRequest(token: "aa01", jwt: try TestToken.make(key, issuedAt: now))
            #expect(await client.send(first).status == 200)
            let refused = await client.send(second)
            #expect(refused.status == 429)
            #expect(String(decoding: refused.body, as: UTF8.self).contains("TooManyProviderTokenUpdates"))
            // The token before goes on being good, as does a new one on a new connection where connections are counted.
            #expect(await client.send(first).status == 200)
            await client.close()
            try await client.connect(port: port, trusting: nil)
            #expect(await client.send(second).status == (scope == "connection" ? 200 : 429))
        }
    }

    @Test(arguments: ["close", "break", "goaway", "bytes"]) func aConnectionMayEndBeforeItsSettings(kind: String)
        async throws
    {
        let extra = kind == "bytes" ? #", "hex": "485454502f312e31""# : ""
        let json = #"{"on_connect": [{"match": {"connection": 2}, "fault": {"kind": "\#(kind)"\#(extra)}}]}"#
        try await withSimulator(Self.open(json)) { service, client, port in
            #expect(await client.send(plain).status == 200)
            let other = TestClient(loop: client.loop)
            try await other.open(port: port)
            // The other client's connection ends, by whatever end; ours serves on.
            while true {
                let counters = await service.counters
                if counters.connections == 2, counters.connectionsOpen == 1 { break }
                await Task.yield()
            }
            #expect(await service.counters.faults == ["connect_" + kind: 1])
            #expect(await client.send(plain).status == 200)
            await other.close()
        }
    }
}
