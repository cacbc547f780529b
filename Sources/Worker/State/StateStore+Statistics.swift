// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// The statistics: hashes per app and UTC hour (`StateKeys`), all in one slot, so that a flush is one step.
extension StateStore {
    /// Begins to count these partitions. The reply has their positions (`CountedPosition`), in order.
    func beginCounting(owner: String, _ partitions: [String], tag: UInt64) throws(RedisFault) {
        try change(tag, StatisticsScripts.beginCounting, keyCount: 1) { command in
            command.arg(StatisticsKey.positions)
            command.arg(owner)
            for partition in partitions { command.arg(partition) }
        }
    }

    /// Adds counts. The reply lists the partitions that belong to another owner; with any, nothing was added.
    func count(_ flush: StatisticsFlush, owner: String, nowMs: Int64, tag: UInt64) throws(RedisFault) {
        try change(tag, StatisticsScripts.count, keyCount: 2 + flush.keys.count) { command in
            command.arg(StatisticsKey.positions)
            command.arg(StatisticsKey.lastFlush(owner))
            for key in flush.keys { command.arg(key) }
            command.arg(owner)
            command.arg(Int64(flush.number))
            command.arg(StateKeys.time(nowMs))
            command.arg(flush.positions.count)
            for (partition, position) in flush.positions {
                command.arg(partition)
                command.arg(position)
            }
            for step in flush.steps { command.arg(step) }
        }
    }

    /// All fields of one of the hashes.
    func statistics(_ key: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HGETALL")
            command.arg(key)
        }
    }

    /// The sums in the hash of an hour, one for each letter.
    func statisticsSums(_ key: String, _ letters: [StatisticsFlush.Letter], tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HMGET")
            command.arg(key)
            for letter in letters { command.arg(".\(letter.rawValue)") }
        }
    }
}

/// The keys of the statistics.
enum StatisticsKey {
    static let positions = "c:t:{n}at"
    static func lastFlush(_ owner: String) -> String { "c:t:{n}f\(owner)" }
    static let hourMs: Int64 = 3_600_000

    /// The numbers of one hour since 1970.
    static func hour(_ app: String, _ hour: Int64) -> String { "c:t:{n}h\(hour):\(app)" }
    /// The names of a day by their hash.
    static func names(_ app: String, _ day: Int64) -> String { "c:t:{n}n\(day):\(app)" }
    /// The numbers and names of a day's tasks.
    static func tasks(_ app: String, _ day: Int64) -> String { "c:t:{n}t\(day):\(app)" }
    /// The tasks of a day by when they came first.
    static func taskList(_ app: String, _ day: Int64) -> String { "c:t:{n}k\(day):\(app)" }
}
