// SPDX-License-Identifier: Apache-2.0
import Crypto
import EventLoop
import HTTP2
import JSON
import Simulator
import Testing

@Suite(.timeLimit(.minutes(10))) struct SimulatorTests {
    private static func open(_ change: (inout SimulatorConfiguration) -> Void = { _ in }) -> SimulatorConfiguration {
        var configuration = SimulatorConfiguration()
        configuration.topics = ["com.example.im"]
        configuration.ledger = .memory
        change(&configuration)
        return configuration
    }

    @Test func aPushOverTLSIsAcceptedAndWrittenDown() async throws {
        let key = try PrivateKey.generate()
        let minted = try MintedCertificate()
        var configuration = Self.open { $0.certificate = minted }
        configuration.keys = [
            ProviderKey(keyID: "KEY1234567", teamID: "TEAM123456", publicKey: try key.publicKey())
        ]
        try await withSimulator(configuration) { service, client, _ in
            #expect(await client.streamsMax == 1)
            let jwt = try TestToken.make(key, issuedAt: Loop.wallMs() / 1000)
            let id = "123e4567-e89b-12d3-a456-426655440000"
            let answer = await client.send(TestRequest(jwt: jwt).with(.identifier, id))
            #expect(answer == Answer(status: 200, apnsID: id, body: [], end: .closed(.noError)))
            await client.waitForStreamsMax(1000)
            let entries = await service.entries
            let entry = try #require(entries.first)
            #expect(entries.count == 1)
            #expect(entry.apnsID == id && entry.status == 200 && entry.answered && entry.fault == nil)
            #expect(entry.headers["apns-topic"] == "com.example.im")
            #expect(entry.headers["authorization"]?.hasPrefix("bearer sha256:") == true)
            #expect(entry.headers.values.allSatisfy { !$0.contains(jwt) })
            #expect(entry.payload == TestRequest().body)
            let counters = await service.counters
            #expect(counters.accepted == 1 && counters.requests == 1 && counters.tokens == 1)
        }
    }

    @Test func aTokenOfZerosIsRefusedWhereNothingElseIsWrong() async throws {
        try await withSimulator(Self.open()) { _, client, _ in
            let zeros = TestRequest(token: String(repeating: "0", count: 64))
            #expect(await client.send(zeros).reason == "BadDeviceToken")
            #expect(await client.send(zeros.with(.topic, nil)).reason == "MissingTopic")
            #expect(await client.send(TestRequest(token: "0001")).status == 200)
        }
    }

    @Test func tokensAreJudgedAsAppleDoes() async throws {
        let key = try PrivateKey.generate()
        var configuration = Self.open()
        configuration.keys = [
            ProviderKey(keyID: "KEY1234567", teamID: "TEAM123456", publicKey: try key.publicKey()),
            ProviderKey(keyID: "KEY7654321", teamID: "TEAM654321", publicKey: try key.publicKey()),
        ]
        let now = Loop.wallMs() / 1000
        let good = try TestToken.make(key, issuedAt: now - 3500)
        let cases: [(String?, String?)] = [
            (nil, "MissingProviderToken"), ("x.y.z", "InvalidProviderToken"), ("x", "InvalidProviderToken"),
            (try TestToken.make(key, keyID: "UNKNOWN123", issuedAt: now), "InvalidProviderToken"),
            (try TestToken.make(key, teamID: "TEAM654321", issuedAt: now), "InvalidProviderToken"),
            (try TestToken.make(key, issuedAt: now, alg: "none"), "InvalidProviderToken"),
            (try TestToken.make(PrivateKey.generate(), issuedAt: now), "InvalidProviderToken"),
            (try TestToken.make(key, issuedAt: now + 4000), "InvalidProviderToken"),
            (try TestToken.make(key, issuedAt: now - 3700), "ExpiredProviderToken"),
            (good, nil),
            // The connection is bound to the first team now.
            (try TestToken.make(key, keyID: "KEY7654321", teamID: "TEAM654321", issuedAt: now), "InvalidProviderToken"),
            (String(good.dropLast(6)) + "AAAAAA", "InvalidProviderToken"), (good, nil),
        ]
        try await withSimulator(configuration) { _, client, _ in
            for (jwt, reason) in cases {
                let answer = await client.send(TestRequest(jwt: jwt))
                #expect(answer.reason == reason)
                #expect(answer.status == (reason == nil ? 200 : 403))
            }
        }
    }

    /// Pushy signs in DER, PyAPNs2 issues its tokens at a fraction of a second.
    @Test func tokensOfPublishedClientsAreTaken() async throws {
        let key = try PrivateKey.generate()
        var configuration = Self.open()
        configuration.keys = [
            ProviderKey(keyID: "KEY1234567", teamID: "TEAM123456", publicKey: try key.publicKey())
        ]
        let now = Loop.wallMs() / 1000
        let cases: [(String, String?)] = [
            (try TestToken.make(key, issuedAt: now, isDER: true), nil),
            (try TestToken.make(key, issuedAt: 0, iat: "\(now).734291"), nil),
            (try TestToken.make(key, issuedAt: 0, iat: "\(now - 3700).5"), "ExpiredProviderToken"),
            (try TestToken.make(key, issuedAt: 0, iat: "1e300"), "InvalidProviderToken"),
            (try TestToken.make(key, issuedAt: 0, iat: "-0.5"), "InvalidProviderToken"),
            (try TestToken.make(key, issuedAt: 0, iat: "\"\(now)\""), "InvalidProviderToken"),
            (try TestToken.make(PrivateKey.generate(), issuedAt: now, isDER: true), "InvalidProviderToken"),
        ]
        try await withSimulator(configuration) { _, client, _ in
            for (jwt, reason) in cases { #expect(await client.send(TestRequest(jwt: jwt)).reason == reason) }
        }
    }

    @Test func onlyTheDevelopmentServerSendsAUniqueIdentifier() async throws {
        for isDevelopment in [false, true] {
            try await withSimulator(Self.open { $0.isDevelopment = isDevelopment }) { _, client, _ in
                let accepted = await client.send(TestRequest())
                #expect(accepted.status == 200 && (accepted.uniqueID?.count == 36) == isDevelopment)
                let rejected = await client.send(TestRequest().with(.topic, "com.example.else"))
                #expect(rejected.reason == "TopicDisallowed" && rejected.uniqueID == nil)
            }
        }
    }

    @Test func headGetsNoContent() async throws {
        try await withSimulator(Self.open()) { _, client, _ in
            let answer = await client.send(TestRequest().with(.method, "HEAD").with(body: []))
            #expect(answer.status == 405 && answer.body.isEmpty && answer.end == .closed(.noError))
        }
    }

    @Test func anUpperCaseIdentifierComesBackAsItWasSent() async throws {
        try await withSimulator(Self.open()) { _, client, _ in
            let id = "123E4567-E89B-12D3-A456-426655440000"
            let answer = await client.send(TestRequest().with(.identifier, id).with(.pushType, nil))
            #expect(answer.status == 200 && answer.apnsID == id)
        }
    }

    @Test func aRejectionCarriesItsReasonAndIdentifier() async throws {
        try await withSimulator(Self.open()) { service, client, _ in
            let answer = await client.send(TestRequest().with(.topic, "com.example.else"))
            #expect(answer.status == 400 && answer.reason == "TopicDisallowed")
            #expect(answer.apnsID?.count == 36)
            let entry = try #require(await service.entries.first)
            #expect(entry.reason == "TopicDisallowed" && entry.answered && entry.apnsID == answer.apnsID)
            #expect(await service.counters.rejected == ["TopicDisallowed": 1])
        }
    }

    @Test(
        arguments: [
            ("{}", 0, 200, nil), ("", 0, 400, "PayloadEmpty"), ("[]", 0, 400, "PayloadEmpty"),
            ("{\"a\":", 0, 400, "PayloadEmpty"), ("{}", 4094, 200, nil), ("{}", 4095, 413, "PayloadTooLarge"),
            ("{}", 100_000, 413, "PayloadTooLarge"),
        ] as [(String, Int, Int, String?)])
    func payloadsAreMeasuredAndParsed(text: String, spaces: Int, status: Int, reason: String?) async throws {
        let body = Array(text.utf8) + [UInt8](repeating: 0x20, count: spaces)
        try await withSimulator(Self.open()) { service, client, _ in
            let answer = await client.send(TestRequest().with(body: body))
            #expect(answer.status == status)
            #expect(answer.reason == reason)
            #expect(await service.entries.first?.bytes == body.count)
        }
    }

    @Test func aThousandPushesAtOnceAreAllAnswered() async throws {
        try await withSimulator(Self.open()) { service, client, _ in
            let requests = (0..<1000).map { TestRequest(token: String(0x1000_0000 + $0, radix: 16)) }
            let answers = await client.send(requests)
            #expect(answers.allSatisfy { $0.status == 200 })
            let tokens = Set(await service.entries.map(\.token))
            #expect(tokens.count == 1000)
            #expect(await service.counters.streamsPeak <= 1000)
        }
    }

    @Test func aRejectionShrinksTheLimitUntilTheNextSuccess() async throws {
        try await withSimulator(Self.open { $0.shrinksOnRejection = true }) { _, client, _ in
            #expect(await client.streamsMax == 1000)
            _ = await client.send(TestRequest(token: "xx"))
            await client.waitForStreamsMax(1)
            _ = await client.send(TestRequest())
            await client.waitForStreamsMax(1000)
        }
    }

    @Test func theStreamLimitFollowsTheScenariosSettings() async throws {
        let scenario = Scenario(settings: [Scenario.SettingsStep(afterMs: 20, maxConcurrentStreams: 7)])
        try await withSimulator(Self.open { $0.scenario = scenario }) { service, client, _ in
            await client.waitForStreamsMax(7)
            await service.setStreamsMax(3)
            await client.waitForStreamsMax(3)
        }
    }

    @Test func aPlainClientGoneBeforeItsAnswerIsWrittenDown() async throws {
        var late = ScenarioAnswer()
        late.delayMs = 3_600_000
        let scenario = Scenario(rules: [ScenarioRule(.init(), .answer(late))])
        try await withSimulator(Self.open { $0.scenario = scenario }) { service, client, _ in
            await client.sendOnly(TestRequest())
            while await service.counters.requests == 0 { await Task.yield() }
            await client.close()
            while await service.counters.connectionsOpen > 0 { await Task.yield() }
            let entry = try #require(await service.entries.first)
            #expect(entry.fault == "gone" && !entry.answered && entry.status == nil)
        }
    }
}
