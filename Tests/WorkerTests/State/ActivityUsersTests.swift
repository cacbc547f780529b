// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis
import Support
import Testing

@testable import Worker

/// Who bound a Live Activity: whom an update reaches that names nobody.
@Suite(.timeLimit(.minutes(10)))
struct ActivityUsersTests {
    private func bind(
        _ token: String, type: TokenRecord.Kind = .activity, activity: String?, attributesType: String? = nil,
        version: Int64 = 1
    ) -> UserState.Change {
        let record = TokenRecord(
            hex: token, environment: .production, topic: "t", type: type, activityID: activity,
            attributesType: attributesType, boundMs: StateWorld.base)
        return .bind(.init(device: "d", token: record, version: version))
    }

    private func page(
        _ world: StateWorld, _ activity: String, after last: String? = nil, count: Int = 100
    ) async throws -> [String] {
        try await world.ask(
            {
                try $0.activityUsers(
                    app: StateWorld.app, activityID: activity, after: last, count: count, tag: $1)
            }, { StateStore.activityUsers($0) })
    }

    @Test func aUserWhoBindsAnActivityIsListedOnce() async throws {
        let world = try StateWorld()
        try await world.connect()
        for (index, uid) in ["b", "a", "用户{}"].enumerated() {
            #expect(try await world.change(uid, bind("aa\(index)", activity: "ride")) == .applied(.none))
        }
        #expect(try await world.change("b", bind("aa0", activity: "ride", version: 2)) == .repeated)
        try await world.change("c", bind("cc", activity: "meal"))
        try await world.change("d", bind("dd", type: .alert, activity: "ride"))
        #expect(try await world.change("e", bind("ee", activity: nil)) == .applied(.none))
        #expect(try await page(world, "ride") == ["a", "b", "用户{}"])
        #expect(try await page(world, "meal") == ["c"])
        #expect(try await page(world, "") == [])
        let life = try await world.raw("TTL", "c:v:{im:ride}") ?? 0
        #expect(life > 46_000 && life <= 46_800)
        await world.end()
    }

    @Test func theStoredActivitiesOfAUserAreBounded() async throws {
        let world = try StateWorld()
        try await world.connect()
        for index in 0..<300 {
            let token = String(0xaa00 + index, radix: 16)
            #expect(try await world.change("a", bind(token, activity: "ride\(index)")) != nil)
        }
        #expect(try await world.raw("HLEN", "c:a:{im:a}") == 256)
        for index in 300..<320 {
            for ends in [false, true] {
                let reply = try await world.ask(
                    {
                        let note = ends ? $0.endActivity : $0.beginActivity
                        let ms = StateWorld.base + 1000
                        try note(StateWorld.app, "a", "ride\(index)", ms, ms, $1)
                    }, { $0.int64 })
                #expect(reply == 1)
            }
            #expect(try await world.raw("HEXISTS", "c:a:{im:a}", "ride\(index)") == 1)
        }
        #expect(try await world.raw("HLEN", "c:a:{im:a}") == 256)
        await world.end()
    }

    /// A bind that a crash cut short lists its user when it comes again, though its token is known by then.
    @Test func aBindCutShortListsItsUserWhenItComesAgain() async throws {
        let world = try StateWorld()
        try await world.connect()
        let change = bind("aa", activity: "ride")
        #expect(try await world.change("a", change, steps: 3) == nil)
        #expect(try await page(world, "ride") == [])
        #expect(try await world.change("a", change) == .repeated)
        #expect(try await page(world, "ride") == ["a"])
        await world.end()
    }

    @Test func pagesNameEachOnceAlthoughOthersComeAndGo() async throws {
        let world = try StateWorld()
        try await world.connect()
        for index in 10..<60 { try await world.raw("ZADD", "c:v:{im:ride}", "0", "u\(index)") }
        var named: [String] = []
        while true {
            let page = try await page(world, "ride", after: named.last, count: 7)
            named += page
            if page.count < 7 { break }
            try await world.raw("ZREM", "c:v:{im:ride}", page[0])
            try await world.raw("ZADD", "c:v:{im:ride}", "0", "u0\(named.count)")
        }
        #expect(named == (10..<60).map { "u\($0)" })
        await world.end()
    }

    @Test func theListIsBounded() async throws {
        let world = try StateWorld()
        try await world.connect()
        for start in stride(from: 0, to: LiveActivity.boundUsersMax, by: 1000) {
            let members = (start..<start + 1000).flatMap { ["0", "u\($0)"] }
            try await world.ask(
                { store, tag in
                    try store.client.command(tag) { command in
                        for word in ["ZADD", "c:v:{im:ride}"] + members { command.arg(word) }
                    }
                }, { _ in })
        }
        #expect(try await world.change("late", bind("aa", activity: "ride")) == .applied(.none))
        #expect(try await world.change("u7", bind("bb", activity: "ride")) == .applied(.none))
        #expect(try await world.raw("ZCARD", "c:v:{im:ride}") == 10_000)
        #expect(try await world.raw("ZSCORE", "c:v:{im:ride}", "late") == nil)
        await world.end()
    }

    @Test func aDeviceHasOneStartTokenPerAttributesType() async throws {
        let world = try StateWorld()
        try await world.connect()
        for (token, type, version) in [
            ("aa", "Ride", 1), ("bb", "Meal", 1), ("cc", nil, 1), ("dd", "Ride", 2),
        ] as [(String, String?, Int64)] {
            let change = bind(token, type: .start, activity: nil, attributesType: type, version: version)
            #expect(try await world.change("a", change) == .applied(.none))
        }
        let tokens = try await world.recipient("a").recipient.tokens
        let found = tokens.map { "\($0.record.hex) \($0.record.attributesType ?? "-") \($0.device)" }.sorted()
        #expect(found == ["bb Meal d", "cc - d", "dd Ride d"])
        #expect(try await world.reachable("a") == ["bb", "cc", "dd"])
        await world.end()
    }
}
