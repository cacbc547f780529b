// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis
import Support
import Testing

@testable import Worker

@Suite(.timeLimit(.minutes(10)))
struct TokenLifeTests {
    private func bind(
        _ token: String, device: String = "d", version: Int64, type: TokenRecord.Kind = .alert, activity: String? = nil,
        boundMs: Int64 = 0
    ) -> UserState.Change {
        .bind(
            UserState.Binding(
                device: device,
                token: TokenRecord(
                    hex: token, environment: .sandbox, topic: "com.example.im", type: type, credential: "main",
                    contentKey: nil, language: "zh-Hans", zone: "", activityID: activity,
                    boundMs: StateWorld.base + boundMs),
                version: version))
    }

    private func unbind(_ token: String, version: Int64) -> UserState.Change {
        .unbind(UserState.Unbinding(device: "d", token: token, version: version))
    }

    @Test func aTokenIsReadAsItWasBound() async throws {
        let world = try StateWorld()
        try await world.connect()
        let before = try await world.recipient("甲{}").version
        #expect(try await world.change("甲{}", bind("aa", device: "手机 1:2", version: -7)) == .applied(.none))
        let read = try await world.recipient("甲{}")
        #expect(read.version == before + 1)
        let token = try #require(read.recipient.tokens.first)
        #expect(token.device == "手机 1:2" && token.version == -7)
        #expect(
            token.record.hex == "aa" && token.record.environment == .sandbox && token.record.topic == "com.example.im")
        #expect(token.record.credential == "main" && token.record.contentKey == nil)
        #expect(token.record.language == "zh-Hans" && token.record.zone == nil && token.record.activityID == nil)
        #expect(token.record.boundMs == StateWorld.base)
        #expect(try await world.reachable("甲{}") == ["aa"])
        await world.end()
    }

    /// The record of a device that shows alerts has its earlier form. Older workers skip the part after the zone.
    @Test func `a bind keeps whether the device shows alerts until the next one`() async throws {
        let world = try StateWorld()
        try await world.connect()
        func bind(_ version: Int64, shows: Bool, zone: String? = nil, ms: Int64 = 0) async throws -> BoundToken? {
            let token = TokenRecord(
                hex: "aa", environment: .production, topic: "t", type: .alert, zone: zone,
                boundMs: StateWorld.base + ms,
                showsAlerts: shows)
            try await world.change("u", .bind(UserState.Binding(device: "d", token: token, version: version)), at: ms)
            return try await world.recipient("u").recipient.tokens.first
        }
        var token = try await bind(1, shows: true, zone: "UTC")
        let shown = try await world.text("HGET", "c:u:{im:u}", "ta1:d")
        #expect(token?.record.showsAlerts == true && shown.hasSuffix("---3:UTC"), "\(shown)")
        token = try await bind(2, shows: false)
        #expect(token?.record.showsAlerts == false && token?.record.zone == "UTC")
        let record = try await world.text("HGET", "c:u:{im:u}", "ta1:d")
        #expect(record.hasSuffix("---3:UTC1:0"), "\(record)")
        #expect(token.map { TokenText.record($0) } == record, "as a removed token is kept")
        token = try await bind(3, shows: true)
        #expect(token?.record.showsAlerts == true && token?.record.zone == "UTC")
        // The same version sent later, as a client without a counter does.
        token = try await bind(3, shows: false, ms: 5)
        #expect(token?.record.showsAlerts == false)
        await world.end()
    }

    /// Each row: changes by (user, change), what is reachable for A and B afterwards, and the last outcome.
    @Test func rules() async throws {
        let world = try StateWorld()
        try await world.connect()
        let big = Int64.max
        let rows: [(String, [(String, UserState.Change)], [String], [String], StateOutcome)] = [
            ("a move", [("A", bind("t1", version: 1)), ("B", bind("t1", version: 2))], [], ["t1"], .applied(.none)),
            (
                "an older bind", [("A", bind("t1", version: 2)), ("B", bind("t1", version: 1))], ["t1"], [],
                .ignored(.stale)
            ),
            (
                "an equal bind of another", [("A", bind("t1", version: 2)), ("B", bind("t1", version: 2))], ["t1"], [],
                .ignored(.stale)
            ),
            (
                "versions beyond 2^53", [("A", bind("t1", version: big - 1)), ("B", bind("t1", version: big))], [],
                ["t1"],
                .applied(.none)
            ),
            (
                "versions beyond 2^53, older", [("A", bind("t1", version: big)), ("B", bind("t1", version: big - 1))],
                ["t1"],
                [], .ignored(.stale)
            ),
            (
                "a new token of the device", [("A", bind("t1", version: 1)), ("A", bind("t2", version: 2))], ["t2"], [],
                .applied(.none)
            ),
            (
                "an old token of the device", [("A", bind("t2", version: 2)), ("A", bind("t1", version: 1))], ["t2"],
                [],
                .ignored(.stale)
            ),
            (
                "the same token on another device",
                [("A", bind("t1", version: 1)), ("A", bind("t1", device: "e", version: 2))], ["t1"], [], .applied(.none)
            ),
            (
                "two types of a device", [("A", bind("t1", version: 1)), ("A", bind("t2", version: 1, type: .voip))],
                ["t1", "t2"], [], .applied(.none)
            ),
            ("unbind", [("A", bind("t1", version: 1)), ("A", unbind("t1", version: 1))], [], [], .applied(.none)),
            (
                "unbind of another version", [("A", bind("t1", version: 2)), ("A", unbind("t1", version: 1))], ["t1"],
                [],
                .ignored(.notOwner)
            ),
            (
                "unbind by another", [("A", bind("t1", version: 1)), ("B", unbind("t1", version: 1))], ["t1"], [],
                .ignored(.notOwner)
            ),
            (
                "unbind before its bind", [("A", unbind("t1", version: 1)), ("A", bind("t1", version: 1))], [], [],
                .ignored(.unbound)
            ),
            (
                "a bind after that", [("A", unbind("t1", version: 1)), ("A", bind("t1", version: 2))], ["t1"], [],
                .applied(.none)
            ),
            (
                "an unbind told again",
                [
                    ("A", bind("t1", version: 1)), ("A", unbind("t1", version: 1)),
                    ("A", bind("t1", version: 1)),
                ], [], [], .ignored(.unbound)
            ),
            (
                "the same activity token twice",
                [
                    ("A", bind("t1", version: 1, type: .activity, activity: "x")),
                    ("A", bind("t1", version: 1, type: .activity, activity: "x", boundMs: 9)),
                ], ["t1"], [], .repeated
            ),
            (
                "the same activity token with a new version",
                [
                    ("A", bind("t1", version: 1, type: .activity, activity: "x")),
                    ("A", bind("t1", version: 2, type: .activity, activity: "x", boundMs: 9)),
                ], ["t1"], [], .repeated
            ),
            (
                "the same activity token with an older version",
                [
                    ("A", bind("t1", version: 2, type: .activity, activity: "x")),
                    ("A", bind("t1", version: 1, type: .activity, activity: "x")),
                ], ["t1"], [], .repeated
            ),
            (
                "its unbind by the newest version",
                [
                    ("A", bind("t1", version: 1, type: .activity, activity: "x")),
                    ("A", bind("t1", version: 2, type: .activity, activity: "x")), ("A", unbind("t1", version: 2)),
                ], [], [], .applied(.none)
            ),
            (
                "the same token at the same version, sent later",
                [("A", bind("t1", version: 1)), ("A", bind("t1", version: 1, boundMs: 9))], ["t1"], [], .applied(.none)
            ),
            (
                "the same token at the same version, read again",
                [("A", bind("t1", version: 1)), ("A", bind("t1", version: 1))], ["t1"], [], .repeated
            ),
            (
                "a new activity token",
                [
                    ("A", bind("t1", version: 1, type: .activity, activity: "x")),
                    ("A", bind("t2", version: 2, type: .activity, activity: "x")),
                ], ["t2"], [], .applied(.none)
            ),
            (
                "two activities",
                [
                    ("A", bind("t1", version: 1, type: .activity, activity: "x")),
                    ("A", bind("t2", version: 2, type: .activity, activity: "y")),
                ], ["t1", "t2"], [], .applied(.none)
            ),
            ("no hex", [("A", bind("t 1", version: 1))], [], [], .ignored(.unusable)),
        ]
        for (name, changes, ofA, ofB, outcome) in rows {
            try await world.raw("FLUSHALL")
            var last: StateOutcome?
            for (uid, change) in changes { last = try await world.change(uid, hex(change)) }
            #expect(last == outcome, "\(name)")
            #expect(try await world.reachable("A") == ofA.map(hex), "\(name)")
            #expect(try await world.reachable("B") == ofB.map(hex), "\(name)")
        }
        await world.end()
    }

    /// `t1` reads well in a table; a token is whole bytes in hexadecimal.
    private func hex(_ name: String) -> String { name.replacing("t", with: "f00") }

    private func hex(_ change: UserState.Change) -> UserState.Change {
        switch change {
        case .bind(var binding):
            binding.token = binding.token.with(hex: hex(binding.token.hex), boundMs: binding.token.boundMs)
            return .bind(binding)
        case .unbind(var unbinding):
            unbinding.token = hex(unbinding.token)
            return .unbind(unbinding)
        default: return change
        }
    }

    private func activity(_ world: StateWorld) async throws -> ActivityState {
        try await world.ask(
            { try $0.activityState(app: StateWorld.app, uid: "A", activityID: "x", tag: $1) }, { ActivityState($0) })
    }

    @Test func anAcceptedEndRemainsInEffectUntilANewStart() async throws {
        let world = try StateWorld()
        try await world.connect()
        func begin(sentMs: Int64, nowMs: Int64) async throws {
            try await world.ask(
                {
                    try $0.beginActivity(
                        app: StateWorld.app, uid: "A", activityID: "x", sentMs: sentMs, nowMs: nowMs, tag: $1)
                }, { _ in })
        }
        func end(sentMs: Int64, nowMs: Int64) async throws {
            try await world.ask(
                {
                    try $0.endActivity(
                        app: StateWorld.app, uid: "A", activityID: "x", sentMs: sentMs, nowMs: nowMs, tag: $1)
                }, { _ in })
        }
        #expect(try await activity(world) == ActivityState())
        try await end(sentMs: 5, nowMs: 50)
        #expect(try await activity(world) == ActivityState(startedMs: 50, isEnded: true), "without a known beginning")
        try await begin(sentMs: 10, nowMs: 100)
        #expect(try await activity(world) == ActivityState(startedMs: 100))
        try await end(sentMs: 20, nowMs: 200)
        #expect(try await activity(world) == ActivityState(startedMs: 100, isEnded: true))
        try await begin(sentMs: 10, nowMs: 300)
        #expect(try await activity(world).isEnded, "another device of the former start")
        try await world.change(
            "A", bind("aa", version: 1, type: .activity, activity: "x", boundMs: 20 - StateWorld.base - 1))
        #expect(try await activity(world).isEnded, "a bind that was sent before the end starts nothing")
        try await begin(sentMs: 30, nowMs: 500)
        #expect(try await activity(world) == ActivityState(startedMs: 500), "a new start restarts the hours")
        await world.end()
    }

    @Test func anActivityKeepsItsBeginningWhenItsTokenIsBoundAgain() async throws {
        let world = try StateWorld()
        try await world.connect()
        try await world.change("A", bind("aa", version: 1, type: .activity, activity: "x", boundMs: 5))
        try await world.change("A", bind("aa", version: 2, type: .activity, activity: "x", boundMs: 900))
        #expect(try await activity(world) == ActivityState(startedMs: StateWorld.base + 5))
        let token = try #require(try await world.recipient("A").recipient.tokens.first)
        #expect(token.record.boundMs == StateWorld.base + 900 && token.version == 2 && token.record.activityID == "x")
        await world.end()
    }

    /// A bind of B is cut after each of its steps; whatever stands then, A is never reached again.
    @Test func aHalfDoneMoveNeverReachesTheFormerOwner() async throws {
        let world = try StateWorld()
        try await world.connect()
        var steps = 0
        while true {
            steps += 1
            try await world.raw("FLUSHALL")
            try await world.change("A", bind("aa", version: 1))
            try await world.change("B", bind("bb", version: 1))
            let outcome = try await world.change("B", bind("aa", version: 2), steps: steps)
            #expect(try await world.reachable("A") == [], "cut after \(steps)")
            if outcome != nil { break }
            // The record comes again, as after a crash, and is carried to its end.
            #expect(try await world.change("B", bind("aa", version: 2)) != .ignored(.stale), "cut after \(steps)")
            #expect(try await world.reachable("A") == [], "cut after \(steps)")
            #expect(try await world.reachable("B") == ["aa"], "cut after \(steps)")
            #expect(try await world.recipient("A").recipient.tokens.isEmpty, "cut after \(steps)")
        }
        #expect(steps >= 4)
        await world.end()
    }

    /// Binds of one token by A, B and C run step by step in a random order, and each may be told twice.
    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func interleavedBindsEndWithTheNewestOwner(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let world = try StateWorld()
        try await world.connect()
        let users = ["A", "B", "C"]
        func runner(_ index: Int) -> StateWorld.TaskRunner {
            StateWorld.TaskRunner(
                task: UserStateTask(
                    app: StateWorld.app, sentMs: StateWorld.base, nowMs: StateWorld.base,
                    state: UserState(uid: users[index], change: bind("aa", version: Int64(index + 1)))))
        }
        for round in 0..<5 {
            try await world.raw("FLUSHALL")
            var running = (0..<users.count).map(runner) + (0..<users.count).map(runner)
            while !running.isEmpty {
                let index = Int.random(in: 0..<running.count, using: &random)
                if try await world.step(&running[index]) != nil { running.remove(at: index) }
                // At no moment more than one user can be reached by the token.
                var reached: [String] = []
                for uid in users where try await !world.reachable(uid).isEmpty { reached.append(uid) }
                #expect(reached.count <= 1, "seed \(seed) round \(round): \(reached)")
            }
            #expect(try await world.reachable("C") == ["aa"], "seed \(seed) round \(round)")
            for uid in ["A", "B"] {
                #expect(try await world.recipient(uid).recipient.tokens.isEmpty, "seed \(seed) round \(round) \(uid)")
            }
        }
        await world.end()
    }

    /// Bind and unbind of two users in any order, each perhaps twice: the same end as in the order of their versions.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func anyOrderOfBindsAndUnbindsEndsAlike(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let world = try StateWorld()
        try await world.connect()
        let changes: [(String, UserState.Change)] = [
            ("A", bind("aa", version: 1)), ("A", unbind("aa", version: 1)), ("B", bind("aa", version: 2)),
            ("B", unbind("aa", version: 2)), ("A", bind("aa", version: 3)),
        ]
        for last in 1...changes.count {
            let told = Array(changes[..<last])
            let order = (told + told.filter { _ in Bool.random(using: &random) }).shuffled(using: &random)
            try await world.raw("FLUSHALL")
            for (uid, change) in order { try await world.change(uid, change) }
            #expect(try await world.reachable("A") == (last == 1 || last == 5 ? ["aa"] : []), "seed \(seed) \(order)")
            #expect(try await world.reachable("B") == (last == 3 ? ["aa"] : []), "seed \(seed) \(order)")
        }
        await world.end()
    }

    @Test func aRefusedTokenGoesOnlyWhileItIsTheSameBind() async throws {
        let world = try StateWorld()
        try await world.connect()
        try await world.change("A", bind("aa", version: 1))
        let old = try #require(try await world.recipient("A").recipient.tokens.first)
        try await world.change("A", bind("aa", version: 2, boundMs: 5))
        func remove(_ token: BoundToken) async throws -> Int64? {
            try await world.ask(
                {
                    try $0.removeToken(app: StateWorld.app, uid: "A", token: token, nowMs: StateWorld.base, tag: $1)
                },
                { $0.int64 })
        }
        func retire(_ token: BoundToken) async throws -> Int64? {
            try await world.ask(
                { try $0.retireDead(app: StateWorld.app, uid: "A", token: token, tag: $1) }, { $0.int64 })
        }
        #expect(try await retire(old) == 0)
        #expect(try await remove(old) == 0)
        #expect(try await world.reachable("A") == ["aa"])
        let new = try #require(try await world.recipient("A").recipient.tokens.first)
        let older = new.record.with(hex: new.record.hex, boundMs: new.record.boundMs - 1)
        let sameVersion = BoundToken(device: new.device, record: older, version: new.version)
        #expect(try await retire(sameVersion) == 0, "bound again by the same version")
        #expect(try await retire(new) == 1)
        #expect(try await remove(new) == 1)
        #expect(try await world.reachable("A") == [])
        #expect(try await world.recipient("A").recipient.tokens.isEmpty)
        await world.end()
    }

    @Test func `another token begins an ended activity anew`() async throws {
        let world = try StateWorld()
        try await world.connect()
        func bindActivity(_ token: String, _ version: Int64, at ms: Int64) async throws {
            try await world.change("A", bind(token, version: version, type: .activity, activity: "x", boundMs: ms))
        }
        func end(at ms: Int64) async throws {
            try await world.ask(
                {
                    try $0.endActivity(
                        app: StateWorld.app, uid: "A", activityID: "x", sentMs: StateWorld.base + ms,
                        nowMs: StateWorld.base + ms, tag: $1)
                }, { _ in })
        }
        try await bindActivity("aa", 1, at: 0)
        try await end(at: 100)
        try await bindActivity("aa", 2, at: 200)
        #expect(try await activity(world).isEnded, "the same token")
        try await bindActivity("bb", 3, at: 50)
        #expect(try await activity(world).isEnded, "bound before the end was sent")
        try await bindActivity("cc", 4, at: 300)
        #expect(try await activity(world) == ActivityState(startedMs: StateWorld.base + 300))
        let later: Int64 = 300 + LiveActivity.endsEndMs
        try await bindActivity("dd", 5, at: later - 1)
        #expect(try await activity(world) == ActivityState(startedMs: StateWorld.base + 300), "within 12 h")
        try await bindActivity("ee", 6, at: later)
        #expect(try await activity(world) == ActivityState(startedMs: StateWorld.base + later), "after 12 h")
        await world.end()
    }

    /// What a bind says of its token's words; nil: nothing, `""`: none.
    private func words(
        _ token: String, device: String = "d", version: Int64, cert: String? = nil, contentKey: String? = nil,
        language: String? = nil, zone: String? = nil
    ) -> UserState.Change {
        .bind(
            UserState.Binding(
                device: device,
                token: TokenRecord(
                    hex: token, environment: .sandbox, topic: "com.example.im", type: .alert, credential: cert,
                    contentKey: contentKey, language: language, zone: zone, boundMs: StateWorld.base),
                version: version))
    }

    private func words(of uid: String, _ world: StateWorld) async throws -> [[String?]] {
        try await world.recipient(uid).recipient.tokens.map {
            [$0.record.credential, $0.record.contentKey, $0.record.language, $0.record.zone]
        }
    }

    @Test func fieldsAbsentFromABindStayAndEmptyOnesClear() async throws {
        let world = try StateWorld()
        try await world.connect()
        let first = words("aa", version: 1, cert: "main", contentKey: "bank {1:x", language: "ja", zone: "Asia/Tokyo")
        try await world.change("A", first)
        try await world.change("A", words("aa", version: 2))
        #expect(try await words(of: "A", world) == [["main", "bank {1:x", "ja", "Asia/Tokyo"]])
        try await world.change("A", words("aa", version: 3, cert: "", contentKey: "", language: "de"))
        #expect(try await words(of: "A", world) == [[nil, nil, "de", "Asia/Tokyo"]])
        // An older bind that comes late, or the same again, changes nothing.
        #expect(try await world.change("A", first) == .ignored(.stale))
        #expect(try await world.change("A", words("aa", version: 3, cert: "x")) == .repeated)
        #expect(try await words(of: "A", world) == [[nil, nil, "de", "Asia/Tokyo"]])
        // The token moves to another device of his: it is the same token.
        try await world.change("A", words("aa", device: "pad", version: 4))
        #expect(try await words(of: "A", world) == [[nil, nil, "de", "Asia/Tokyo"]])
        // APNs gave the device a new one: what the device has said stands.
        try await world.change("A", words("bb", device: "pad", version: 5, contentKey: "work"))
        #expect(try await words(of: "A", world) == [[nil, "work", "de", "Asia/Tokyo"]])
        await world.end()
    }

    /// Another app or environment on the same device: its pushes would be signed by the wrong credential.
    @Test(arguments: [("com.example.im", APNsEnvironment.production), ("com.example.beta", .sandbox)])
    func aCredentialStaysOnlyWithTopicAndEnvironment(topic: String, environment: APNsEnvironment) async throws {
        let world = try StateWorld()
        try await world.connect()
        try await world.change("A", words("aa", version: 1, cert: "main", contentKey: "k"))
        let other = TokenRecord(
            hex: "bb", environment: environment, topic: topic, type: .alert, boundMs: StateWorld.base)
        try await world.change("A", .bind(.init(device: "d", token: other, version: 2)))
        #expect(try await words(of: "A", world) == [[nil, "k", nil, nil]])
        let token = try #require(try await world.recipient("A").recipient.tokens.first?.record)
        #expect(token.hex == "bb" && token.topic == topic && token.environment == environment)
        await world.end()
    }

    @Test func aTokenThatMovesFromAnotherUserKeepsNothingOfHis() async throws {
        let world = try StateWorld()
        try await world.connect()
        try await world.change("A", words("aa", version: 1, cert: "main", contentKey: "k", language: "ja", zone: "UTC"))
        try await world.change("B", words("aa", version: 2))
        #expect(try await words(of: "B", world) == [[nil, nil, nil, nil]])
        try await world.change("A", words("aa", version: 3))
        #expect(try await words(of: "A", world) == [[nil, nil, nil, nil]])
        await world.end()
    }

    @Test func aUserKeepsAtMost64Tokens() async throws {
        let world = try StateWorld()
        try await world.connect()
        for index in 0..<80 as Range<Int64> {
            try await world.change(
                "A", bind("aa\(index)", device: "d\(index)", version: 1, boundMs: index))
        }
        let tokens = try await world.recipient("A").recipient.tokens
        #expect(tokens.count == 64)
        #expect(!tokens.contains { $0.device == "d0" } && tokens.contains { $0.device == "d79" })
        await world.end()
    }
}

extension TokenRecord {
    fileprivate func with(hex: String, boundMs: Int64) -> TokenRecord {
        TokenRecord(
            hex: hex, environment: environment, topic: topic, type: type, credential: credential,
            contentKey: contentKey, language: language, zone: zone, activityID: activityID,
            attributesType: attributesType, boundMs: boundMs, showsAlerts: showsAlerts)
    }
}
