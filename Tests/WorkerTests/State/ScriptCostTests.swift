// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis
import Support
import Testing

@testable import Worker

/// What scripts cost Redis in the worst state that a client's records can make, in commands: a script keeps all others
/// waiting while it runs.
@Suite(.timeLimit(.minutes(10)))
struct ScriptCostTests {
    private static let base = StateWorld.base
    /// Commands that one script may run; each is well under 5 µs of redis-server, elements of many-membered ones included.
    private static let commandsMax: Int64 = 100

    /// Messages that came after they had been read and after a report: each is noted as gone.
    private func claimGone(_ world: StateWorld, _ uid: String, _ range: Range<Int64>) async throws {
        for index in range {
            _ = try await world.claim(.message(uid, "g\(index)", "gone", sent: Self.base + 10, seq: index))
        }
    }

    @Test func atMostAThousandRemovedMessagesAreRemembered() async throws {
        let world = try StateWorld()
        try await world.connect()
        try await world.change("u", .badgeReport(device: "d", value: 5000, clientMs: Self.base), at: 1)
        try await world.change("u", .read(conversation: "gone", upTo: .init(seq: 100_000)), at: 20)
        try await claimGone(world, "u", 0..<1300)
        #expect(try await world.raw("ZCARD", "c:x:{\(StateWorld.app):u}") ?? .max <= 1000)
        // Revokes note what they take off too.
        try await world.change("v", .badgeReport(device: "d", value: 5000, clientMs: Self.base), at: 1)
        for index in 0..<1300 as Range<Int64> {
            _ = try await world.claim(.message("v", "m\(index)", "c", sent: Self.base + 10))
            _ = try await world.claim(
                .revoke("v", "r\(index)", "c", sent: Self.base + 20, target: "m\(index)", badge: .decrease))
        }
        #expect(try await world.raw("ZCARD", "c:x:{\(StateWorld.app):v}") ?? .max <= 1000)
        await world.end()
    }

    /// A user with `count` unread messages of one conversation, as many gone and as many read marks: what each script runs.
    private func costs(_ world: StateWorld, _ uid: String, _ count: Int64) async throws -> [String: Int64] {
        try await world.change(uid, .badgeReport(device: "d", value: 5000, clientMs: Self.base), at: 1)
        try await world.change(uid, .read(conversation: "gone", upTo: .init(seq: 100_000)), at: 20)
        try await claimGone(world, uid, 0..<count)
        for index in 0..<count {
            _ = try await world.claim(.message(uid, "m\(index)", "c", sent: Self.base + 10 + index, seq: index))
        }
        var costs: [String: Int64] = [:]
        // Beyond 2048 conversations some are forgotten.
        try await world.readElsewhere(uid, count * 2)
        costs["read of another conversation"] = try await world.commands {
            try await world.change(uid, .read(conversation: "another", upTo: .init(seq: 1)), at: 20)
        }
        costs["claim"] = try await world.commands {
            _ = try await world.claim(.message(uid, "last", "c", sent: Self.base + 9000, seq: 9000))
        }
        costs["revoke"] = try await world.commands {
            _ = try await world.claim(
                .revoke(uid, "r", "c", sent: Self.base + 9001, target: "m1", badge: .decrease))
        }
        costs["unknown revoke"] = try await world.commands {
            _ = try await world.claim(
                .revoke(uid, "s", "gone", sent: Self.base + 15, target: "nowhere", badge: .decrease))
        }
        costs["report"] = try await world.commands {
            try await world.change(
                uid, .badgeReport(device: "d", value: 1, clientMs: Self.base + 11), at: 30)
        }
        // Later than the first read of the gone ones: each gets an earlier time.
        costs["read of what is gone"] = try await world.commands {
            try await world.change(uid, .read(conversation: "gone", upTo: .init(seq: 99_999)), at: 15)
        }
        costs["read"] = try await world.commands {
            try await world.change(uid, .read(conversation: "c", upTo: .init(seq: 100_000)), at: 9500)
        }
        try await world.holdBack(uid, count)
        costs["digest"] = try await world.commands {
            _ = try await world.ask({ try $0.takeDigest(app: StateWorld.app, uid: uid, tag: $1) }, { $0.count })
        }
        costs["mute"] = try await world.commands {
            try await world.change(uid, .mute(conversation: "new", level: .all, untilMs: nil), at: 9500)
        }
        return costs
    }

    @Test func noScriptRunsManyCommandsInTheWorstState() async throws {
        let world = try StateWorld()
        try await world.connect()
        let costs = try await costs(world, "u", 1030)
        print("commands per script, all at its cap: \(costs.sorted { $0.key < $1.key })")
        for (name, commands) in costs { #expect(commands <= Self.commandsMax, "\(name): \(commands) commands") }
        await world.end()
    }

    @Test func fourTimesTheStateCostsAtMostSixTimesTheCommands() async throws {
        let world = try StateWorld()
        try await world.connect()
        let (few, many) = (try await costs(world, "few", 250), try await costs(world, "many", 1000))
        for (name, commands) in many {
            let before = few[name] ?? 0
            #expect(commands <= 6 * before, "\(name): \(before), then \(commands)")
        }
        await world.end()
    }

    /// Members of one group reach the ledger's cap with the same message.
    @Test func claimsTogetherDoNotCutManyLedgersInOneCall() async throws {
        let world = try StateWorld()
        try await world.connect()
        let users = (0..<32).map { "u\($0)" }
        var most: Int64 = 0
        for index in 0..<1040 as Range<Int64> {
            let request = ClaimRequest.message("", "m\(index)", "c", sent: Self.base + index)
            if index < 990 {
                _ = try await world.claimTogether(request, users)
                continue
            }
            most = max(most, try await world.commands { _ = try await world.claimTogether(request, users) })
        }
        print("commands of 32 claims at the ledgers' caps: \(most)")
        #expect(most <= 32 * 4 + Self.commandsMax)
        for user in users {
            #expect(try await world.raw("ZCARD", "c:l:{\(StateWorld.app):\(user)}") ?? .max <= 1040)
        }
        await world.end()
    }
}

extension StateWorld {
    /// Commands that redis-server ran meanwhile, those within scripts included.
    fileprivate func commands(_ body: @Sendable () async throws -> Void) async throws -> Int64 {
        _ = try await text("CONFIG", "RESETSTAT")
        try await body()
        let statistics = try await text("INFO", "commandstats")
        var calls: Int64 = 0
        for line in statistics.split(whereSeparator: \.isNewline) {
            guard line.hasPrefix("cmdstat_"), !line.hasPrefix("cmdstat_config") else { continue }
            let figures = line.split(separator: ":calls=").last ?? ""
            calls += Int64(figures.prefix { $0.isNumber }) ?? 0
        }
        return calls
    }

    /// So many messages held back by DND, as `holdForDigest` notes them.
    fileprivate func holdBack(_ uid: String, _ count: Int64) async throws {
        let fill = """
            for i = 1, ARGV[1] do redis.call('SADD', KEYS[1], 'digest08' .. (1700000100000 + i) .. ' ' .. i .. ' mm' .. i) end
            """
        _ = try await raw("EVAL", fill, "1", "c:g:{\(Self.app):\(uid)}", String(count))
    }

    /// Read marks of so many conversations, names and histories at their longest, as `read` writes them.
    fileprivate func readElsewhere(_ uid: String, _ count: Int64) async throws {
        let fill = """
            local history = string.rep(';1000000 1700000000000 1700000000000', 8)
            for i = 1, ARGV[1] do
              redis.call('HSET', KEYS[1], 'r' .. string.rep('n', 120) .. i, '1000000 1700000000000|' .. string.sub(history, 2))
            end
            """
        _ = try await raw("EVAL", fill, "1", "c:s:{\(Self.app):\(uid)}", String(count))
    }

    fileprivate func claimTogether(_ request: ClaimRequest, _ uids: [String]) async throws -> Int {
        try await ask(
            {
                try $0.claim(
                    request.subject, app: request.app, uids: uids, counted: request.counted, nowMs: request.nowMs,
                    tag: $1)
            }, { $0.count })
    }
}
