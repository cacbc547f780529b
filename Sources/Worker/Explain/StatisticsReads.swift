// SPDX-License-Identifier: Apache-2.0
public import Redis

/// The counts of apps by hour: the layer above `StateReader`.
public struct StatisticsReads: Sendable {
    private let state: StateReader

    public init(_ state: StateReader) { self.state = state }

    /// The statistics of an app in the hours that begin before `toMs` and end after `fromMs`; at most 366 days.
    public func statistics(app: String, fromMs: Int64, toMs: Int64) async throws(RedisFault) -> StatisticsReport {
        let hours = Self.hours(fromMs: fromMs, toMs: toMs)
        var report = StatisticsReport(app: app, hours: hours)
        if hours.isEmpty { return report }
        let days = (hours.lowerBound / 24)...((hours.upperBound - 1) / 24)
        for day in days {
            let ofDay = Array(max(hours.lowerBound, day * 24)..<min(hours.upperBound, (day + 1) * 24))
            let keys = [StatisticsKey.names(app, day), StatisticsKey.tasks(app, day)]
            let hashes = try await hashes(keys + ofDay.map { StatisticsKey.hour(app, $0) })
            report.add(tasks: hashes[1])
            for (hour, fields) in zip(ofDay, hashes.dropFirst(2)) {
                for (field, value) in fields {
                    if let count = Int64(value) { report.add(field, count, hour: hour, names: hashes[0]) }
                }
            }
        }
        return report
    }

    /// The sums of an app by the start of the hour, Unix ms, in the hours that begin before `toMs` and end after `fromMs`.
    func statisticsByHour(
        app: String, fromMs: Int64, toMs: Int64
    ) async throws(RedisFault) -> [Int64: StatisticsNumbers] {
        let hours = Array(Self.hours(fromMs: fromMs, toMs: toMs))
        let letters = StatisticsFlush.Letter.allCases
        let sums = try await state.ask(
            hours.count, into: Array(repeating: StatisticsNumbers(), count: hours.count),
            { (store, tags) throws(RedisFault) in
                for (hour, tag) in zip(hours, tags) {
                    try store.statisticsSums(StatisticsKey.hour(app, hour), letters, tag: tag)
                }
            },
            { sums, place, reply in
                var index = 0
                reply.forEach { count in
                    if index < letters.count, let number = count.string.flatMap({ Int64($0) }) {
                        sums[place].add(number, letters[index])
                    }
                    index += 1
                }
            })
        var byHour: [Int64: StatisticsNumbers] = [:]
        for (hour, numbers) in zip(hours, sums) where numbers != StatisticsNumbers() {
            byHour[hour * StatisticsKey.hourMs] = numbers
        }
        return byHour
    }

    /// Hours since 1970.
    static func hours(fromMs: Int64, toMs: Int64) -> Range<Int64> {
        let most: Int64 = 366 * 24
        let hourMs = StatisticsKey.hourMs
        let end = min(max(0, toMs), Int64.max - hourMs) / hourMs + (toMs % hourMs > 0 ? 1 : 0)
        let start = max(0, fromMs) / hourMs
        return min(end, max(start, end - most))..<end
    }

    private func hashes(_ keys: [String]) async throws(RedisFault) -> [[String: String]] {
        try await state.ask(
            keys.count, into: Array(repeating: [:], count: keys.count),
            { (store, tags) throws(RedisFault) in
                for (key, tag) in zip(keys, tags) { try store.statistics(key, tag: tag) }
            },
            { found, place, reply in
                reply.forEachPair { field, value in
                    if let field = field.string, let value = value.string { found[place][field] = value }
                }
            })
    }
}
