// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Foundation
import Testing

@testable import Worker

/// The statistics on the operator's page.
@Suite struct StatisticsPanelTests {
    private static let hourMs: Int64 = 3_600_000
    /// 22 November 2025, 13:20 UTC.
    private static let nowMs: Int64 = 1_763_817_600_000

    private func numbers(accepted: Int64, opened: Int64 = 0, rejected: Int64 = 0) -> StatisticsNumbers {
        var numbers = StatisticsNumbers()
        (numbers.accepted, numbers.alerts, numbers.opened, numbers.rejected) = (accepted, accepted, opened, rejected)
        return numbers
    }

    private func page(_ statistics: PageStatistics?) -> String {
        var facts = PageFacts()
        facts.atMs = Self.nowMs
        facts.statistics = statistics
        return StatusPage(facts).statistics.html
    }

    @Test func hoursAndDaysAreBarsAndTheLastDayIsInWords() {
        let hour = Self.nowMs / Self.hourMs * Self.hourMs
        let page = page(
            PageStatistics(hours: [
                hour: numbers(accepted: 300, opened: 30, rejected: 100),
                hour - 23 * Self.hourMs: numbers(accepted: 100),
                hour - 24 * Self.hourMs: numbers(accepted: 1000), hour - 40 * 24 * Self.hourMs: numbers(accepted: 7777),
            ]))
        #expect(page.contains(">400<span class=\"unit\"> accepted in 24 h"))
        #expect(page.contains(">1400<span class=\"unit\"> accepted in 31 days"))
        #expect(page.contains("peak 1000 an hour") && page.contains("peak 1100 a day"), "\(page)")
        #expect(page.contains("opened <b>8 %</b>") && !page.contains("arrived"))
        // Three hours and two days with accepted pushes, one of each with rejected ones.
        #expect(page.components(separatedBy: "<polygon class=\"accepted\"").count == 1 + 3 + 2)
        #expect(page.components(separatedBy: "<polygon class=\"rejected\"").count == 1 + 1 + 1)
    }

    @Test func withoutNumbersNothingIsSaid() {
        #expect(page(nil).contains("is reading them from Redis") && !page(nil).contains("<svg"))
        let empty = page(PageStatistics(fault: "Redis does not answer"))
        #expect(empty.contains("Redis does not answer: these numbers are old") && !empty.contains("<polygon"))
        #expect(!empty.contains("of alerts"), "there are no rates without alerts")
    }

    @Test func redisIsAskedEachThirtySecondsForFewHoursAndForAllAfterTenMinutes() throws {
        var asked: [StatisticsQuestion] = []
        let queue = StatisticsQueue { asked.append($0) }
        let watch = StatisticsWatch(queue)
        func look(_ seconds: UInt64) -> PageStatistics? {
            watch.statistics(nowNanos: seconds * 1_000_000_000, nowMs: Self.nowMs)
        }

        #expect(look(0) == nil && look(100) == nil && asked.count == 1)
        #expect(asked[0].isForPage && asked[0].fromMs == Self.nowMs - 31 * 24 * Self.hourMs)
        queue.end(.hours([0: numbers(accepted: 1), Self.hourMs: numbers(accepted: 1)]))
        #expect(look(29)?.hours.count == 2 && asked.count == 1)
        _ = look(31)
        #expect(asked.count == 2 && asked[1].fromMs == Self.nowMs - 2 * Self.hourMs)
        queue.end(.hours([Self.hourMs: numbers(accepted: 5)]))
        #expect(look(32)?.hours == [0: numbers(accepted: 1), Self.hourMs: numbers(accepted: 5)])
        _ = look(62)
        queue.end(.response(HTTPResponse(status: 503, text: "away")))
        let old = try #require(look(63))
        #expect(old.fault != nil && old.hours.count == 2, "old numbers remain")
        _ = look(601)
        #expect(asked.last?.fromMs == Self.nowMs - 31 * 24 * Self.hourMs)
        queue.end(.hours([:]))
        #expect(look(602) == PageStatistics(), "a number that Redis no longer has is gone")
    }
}
