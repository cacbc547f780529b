// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage
import Worker

/// Bursts and an APNs that is unavailable for so long that their messages wait in `carillon.parked`.
struct CoalescingParkedTests {
    private static let users = (0..<4).map { "u\($0)" }

    /// Messages to each user, four a second: for a second, while APNs is unavailable, and for three seconds after it.
    ///
    /// - Returns: their number per user.
    private static func play(_ stage: Stage, unavailableSeconds: Int) throws -> Int {
        try stage.play(state: users.map { .bind($0) })
        let count = 4 * (1 + unavailableSeconds + 3)
        for number in 0..<count {
            if number == 4 { stage.answerPushes(.unavailable) }
            if number == 4 * (1 + unavailableSeconds) { stage.answerPushes(nil) }
            try stage.writeEvents(users.map { .message("\($0)-\(number)", to: [$0], seq: Int64(number + 1)) })
            stage.wait(.milliseconds(250))
        }
        try stage.settle()
        return count
    }

    /// The numbers of the messages that were pushed to the user, in the order of the pushes.
    private static func pushed(_ seen: Seen, _ user: String, count: Int) -> [Int] {
        let ids = seen.pushIDs(of: (0..<count).map { "\(user)-\($0)" }, to: user)
        var numbers: [String: Int] = [:]
        for (number, id) in ids.enumerated() { if let id { numbers[id] = number } }
        return seen.accepted(token(user, "phone")).compactMap { numbers[$0.apnsID] }
    }

    /// "You have 3 new messages" counts as three, any other text as one.
    private static func mergedCount(_ push: LedgerEntry) -> Int {
        push.json["aps"]?["alert"]?["body"]?.string?.split(separator: " ").compactMap { Int($0) }.first ?? 1
    }

    /// A push that returns and finds APNs unavailable is parked again. Meanwhile the rest of its burst waits behind it, and new
    /// messages of the device are parked.
    @Test(arguments: [8, 12, 16, 20, 26])
    func `messages that are parked again are pushed in their order`(unavailableSeconds: Int) throws {
        var settings = LocalCluster.Settings.oneShard
        settings.appLines = "    coalesce: {window_s: 1}\n"
        settings.templates = Stage.templates
        try Stage.with(settings) { stage in
            let count = try Self.play(stage, unavailableSeconds: unavailableSeconds)
            let seen = try stage.look()
            for user in Self.users {
                let numbers = Self.pushed(seen, user, count: count)
                #expect(numbers.count > 2 && numbers == numbers.sorted(), "\(user)")
                #expect(numbers.last == count - 1)
                // The newest of its messages carries a merged push.
                let merged = zip([-1] + numbers, numbers).map { $1 - $0 }
                #expect(seen.accepted(token(user, "phone")).map(Self.mergedCount) == merged)
            }
            #expect(seen.doubled.isEmpty && seen.results.count == count * Self.users.count)
        }
    }

    /// Another process may read the first of a user's records before the others are written.
    @Test func `the messages of a merged push are parked in their order`() throws {
        var settings = LocalCluster.Settings.oneShard
        settings.appLines = "    coalesce: {window_s: 1}\n"
        try Stage.with(settings) { stage in
            _ = try Self.play(stage, unavailableSeconds: 8)
            for user in Self.users {
                let parked = try stage.look().parked.filter { $0["uid"]?.string == user }
                    .compactMap { $0["msg_id"]?.string?.split(separator: "-").last.flatMap { Int($0) } }
                #expect(parked.count > 8 && parked == parked.sorted(), "\(user)")
            }
        }
    }

    /// Another shard reads what is parked, and knows nothing of the window. While it is open, APNs is away for some seconds.
    @Test func `a message that is parked does not return before one that waits for the end of their burst`() throws {
        var settings = LocalCluster.Settings()
        settings.appLines = "    coalesce: {window_s: 10}\n"
        try Stage.with(settings) { stage in
            let users = (0..<12).map { "w\($0)" }
            func write(_ name: String, conv: String) throws {
                try stage.writeEvents(users.map { .message("\($0)-\(name)", to: [$0], conv: "\(conv)-\($0)") })
            }
            try stage.play(state: users.map { .bind($0) })
            try write("1", conv: "c")
            stage.wait(.milliseconds(300))
            try write("2", conv: "c")
            stage.wait(.milliseconds(700))
            stage.answerPushes(.unavailable)
            try write("other", conv: "d")
            _ = try stage.look(until: "it is parked", within: .seconds(8)) { $0.parked.count == users.count }
            try write("3", conv: "c")
            stage.wait(.milliseconds(200))
            stage.answerPushes(nil)
            try stage.settle()
            let seen = try stage.look()
            for user in users {
                let ids = seen.pushIDs(of: (1...3).map { "\(user)-\($0)" }, to: user)
                let pushed = seen.accepted(token(user, "phone")).compactMap { ids.firstIndex(of: $0.apnsID) }
                #expect(pushed.first == 0 && pushed.last == 2 && pushed == pushed.sorted(), "\(user)")
            }
        }
    }

    /// Its event must not stay open, as no mark says what was pushed.
    @Test func `a message without a claim goes with those that wait for the end of their burst`() throws {
        var settings = LocalCluster.Settings.oneShard
        settings.appLines = "    coalesce: {window_s: 60}\n"
        try Stage.with(settings) { stage in
            let phone = token("full", "phone")
            try stage.play(state: [.bind("full")])
            for number in 1...2 { try stage.writeEvents([.message("full-\(number)", to: ["full"])]) }
            try until("the first is pushed") { try stage.look().accepted(phone).count == 1 }
            stage.wait(.seconds(1))
            try stage.redis(["CONFIG SET maxmemory 1"])
            try stage.writeEvents([.message("full-3", to: ["full"])])
            _ = try stage.look(until: "the others are pushed", within: .seconds(10)) { $0.accepted(phone).count == 2 }
            try stage.redis(["CONFIG SET maxmemory 0"])
            try stage.settle()
            let seen = try stage.look()
            #expect(seen.push(of: "full-3")?.apnsID == seen.accepted(phone).last?.apnsID)
            #expect(seen.outcomes(of: "full-2") == ["full/phone suppressed coalesced"] && seen.doubled.isEmpty)
            #expect(seen.accepted(phone).count == 2)
        }
    }

    /// A worker ends without notice while bursts wait, are parked, and return.
    @Test(arguments: [3_000, 6_400, 8_300, 13_000, 13_700])
    func `a worker that dies meanwhile loses no message and doubles none`(killedAfterMs: Int64) throws {
        var settings = LocalCluster.Settings.oneShard
        settings.appLines = "    coalesce: {window_s: 1}\n"
        try Stage.bare(settings) { stage in
            try stage.writeState(Self.users.map { .bind($0) })
            let first = try stage.startWorker(waits: false)
            try stage.awaitState(first)
            let begun = nowMs
            stage.answerPushes(.unavailable)
            let count = 56
            for number in 0..<count {
                try stage.writeEvents(Self.users.map { .message("\($0)-\(number)", to: [$0], seq: Int64(number + 1)) })
                stage.wait(untilMs: begun + Int64(number + 1) * 250)
                if stage.workers.contains(where: { $0 === first }), nowMs >= begun + killedAfterMs { stage.kill(first) }
            }
            let second = try stage.startWorker(waits: false)
            stage.wait(.seconds(20))
            stage.answerPushes(nil)
            _ = try stage.look(until: "all have their result") { seen in
                Self.users.allSatisfy { user in
                    (0..<count).allSatisfy { !seen.outcomes(of: "\(user)-\($0)").isEmpty }
                }
            }
            #expect(try stage.stop(second))
            let seen = try stage.look()
            #expect(seen.doubled.isEmpty && seen.results.count == count * Self.users.count)
            for user in Self.users {
                let numbers = Self.pushed(seen, user, count: count)
                #expect(numbers == numbers.sorted() && numbers.last == count - 1, "\(user)")
            }
        }
    }
}
