// SPDX-License-Identifier: Apache-2.0
/// The statistics on the operator's page: the sums of all apps by hour.
struct PageStatistics: Sendable, Equatable {
    /// By the start of the hour, Unix ms.
    var hours: [Int64: StatisticsNumbers] = [:]
    /// Why the newest are missing.
    var fault: String?

    /// The sum of the hours that begin in this time.
    func sum(from: Int64, to: Int64) -> StatisticsNumbers {
        stride(from: from, to: to, by: Int(StatisticsKey.hourMs)).reduce(StatisticsNumbers()) { sum, hour in
            hours[hour].map { sum + $0 } ?? sum
        }
    }
}

/// Asks for the statistics while people read the page. On the operator's loop.
final class StatisticsWatch {
    private let queue: StatisticsQueue
    private var numbers: PageStatistics?
    private var isAsking = false
    private var askedNanos: UInt64?
    /// The last look at all hours. Reports change old ones; the others do not change.
    private var readAllNanos: UInt64?

    private static let everyNanos: UInt64 = 30_000_000_000
    private static let allNanos: UInt64 = 600_000_000_000

    init(_ queue: StatisticsQueue) { self.queue = queue }

    /// Nil before the first answer.
    func statistics(nowNanos: UInt64, nowMs: Int64) -> PageStatistics? {
        if !isAsking, askedNanos.map({ nowNanos >= $0 &+ Self.everyNanos }) ?? true { ask(nowNanos, nowMs) }
        return numbers
    }

    private func ask(_ nowNanos: UInt64, _ nowMs: Int64) {
        let isForAll = readAllNanos.map { nowNanos >= $0 &+ Self.allNanos } ?? true
        let reach = isForAll ? StatusPage.daysShown * 24 * StatisticsKey.hourMs : 2 * StatisticsKey.hourMs
        let question = StatisticsQuestion(fromMs: nowMs - reach, toMs: nowMs, isForPage: true)
        isAsking = true
        askedNanos = nowNanos
        queue.begin(question) { [unowned self] answer in
            isAsking = false
            var fresh = isForAll ? PageStatistics() : numbers ?? PageStatistics()
            switch answer {
            case .hours(let hours):
                fresh.hours.merge(hours) { _, new in new }
                fresh.fault = nil
                if isForAll { readAllNanos = nowNanos }
            case .response:
                fresh = numbers ?? PageStatistics()
                fresh.fault = "Redis does not answer"
            }
            numbers = fresh
        }
    }
}
