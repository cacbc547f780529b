// SPDX-License-Identifier: Apache-2.0
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

    /// A push that returns and finds APNs unavailable is parked again. Meanwhile the rest of its burst waits behind it, and new
    /// messages of the device are parked.
    @Test(arguments: [8, 12, 16, 20, 26])
    func `messages that are parked again are pushed in their order`(unavailableSeconds: Int) throws {
        var settings = LocalCluster.Settings.oneShard
        settings.appLines = "    coalesce: {window_s: 1}\n"
        try Stage.with(settings) { stage in
            let count = try Self.play(stage, unavailableSeconds: unavailableSeconds)
            let seen = try stage.look()
            for user in Self.users {
                let numbers = Self.pushed(seen, user, count: count)
                #expect(numbers.count > 2 && numbers == numbers.sorted(), "\(user)")
                #expect(numbers.last == count - 1)
            }
            #expect(seen.doubled.isEmpty && seen.results.count == count * Self.users.count)
        }
    }
}
