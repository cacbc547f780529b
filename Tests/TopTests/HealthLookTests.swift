// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

@testable import Fleet

/// The conditions of health, each with figures just within and just beyond its bound.
@Suite struct HealthLookTests {
    private static func look(_ seconds: UInt64, _ text: String) -> WorkerLook {
        let names = HealthLook.metrics.union([FleetMetrics.redisSeconds + "_bucket"])
        let page = MetricsPage(Array(("process_start_time_seconds 1\n" + text).utf8), names: names)
        return WorkerLook(address: "", atNanos: seconds * 1_000_000_000, answer: .facts(page, StatusFacts()))
    }

    private static func notes(_ text: String, after before: String = "") -> [HealthNote] {
        HealthLook(look(180, text), after: look(0, before), wallSeconds: 1_000_000).notes
    }

    private static func attempts(_ accepted: Int, _ rejected: Int, ambiguous: Int = 0) -> String {
        [("accepted", accepted), ("rejected", rejected), ("ambiguous", ambiguous)].map {
            "carillon_push_attempts_total{app=\"im\",env=\"production\",result=\"\($0)\"} \($1)\n"
        }.joined()
    }

    @Test(
        arguments: [
            ("", nil), (attempts(95, 5), nil), (attempts(94, 6), .notAccepted), (attempts(0, 19), nil),
            (attempts(0, 20), .nothingAccepted), (attempts(996, 0, ambiguous: 4), nil),
            (attempts(994, 0, ambiguous: 6), .unanswered),
            ("carillon_apns_alarms_total{app=\"im\",env=\"production\",reason=\"BadTopic\"} 1", .misconfigured),
            ("carillon_retries_denied_total{app=\"im\",env=\"production\"} 3", .noRetries),
            ("carillon_credential_expiry_timestamp_seconds{app=\"im\",credential=\"c\"} 2300000", nil),
            ("carillon_credential_expiry_timestamp_seconds{app=\"im\",credential=\"c\"} 2200000", .certificate),
            ("carillon_events_consumed_total 1000\ncarillon_dlq_records_total{reason=\"x\"} 9", nil),
            ("carillon_events_consumed_total 1000\ncarillon_dlq_records_total{reason=\"x\"} 10", .deadLetters),
            ("carillon_events_consumed_total 7\ncarillon_dlq_records_total{reason=\"x\"} 4", nil),
            ("carillon_events_consumed_total 7\ncarillon_dlq_records_total{reason=\"x\"} 5", .deadLetters),
            (
                "carillon_decisions_total{verdict=\"accepted\"} 5\ncarillon_decisions_total{verdict=\"expired\"} 4",
                nil
            ),
            (
                "carillon_decisions_total{verdict=\"accepted\"} 999\ncarillon_decisions_total{verdict=\"expired\"} 1",
                nil
            ),
            (
                "carillon_decisions_total{verdict=\"accepted\"} 990\ncarillon_decisions_total{verdict=\"expired\"} 10",
                .expired
            ),
            ("carillon_kafka_lag_seconds{topic=\"im.events\"} 60", nil),
            ("carillon_kafka_lag_seconds{topic=\"im.events\"} 61", .behind),
            ("carillon_watermark_age_seconds 121\ncarillon_pending_events 0", nil),
            ("carillon_watermark_age_seconds 121\ncarillon_pending_events 1", .stuck),
            ("carillon_kafka_commits_total{result=\"ok\"} 4\ncarillon_kafka_commits_total{result=\"failed\"} 4", nil),
            (
                "carillon_kafka_commits_total{result=\"ok\"} 4\ncarillon_kafka_commits_total{result=\"failed\"} 5",
                .commits
            ),
            ("carillon_kafka_gap_records_total 1", .gap), ("carillon_log_lines_dropped_total 1", .logLost),
            ("carillon_metrics_series 2701", .series), ("process_open_fds 80\nprocess_max_fds 100", nil),
            ("process_open_fds 81\nprocess_max_fds 100", .descriptors),
            (
                "carillon_redis_command_seconds_bucket{le=\"0.1\"} 100\ncarillon_redis_command_seconds_bucket{le=\"+Inf\"} 100",
                nil
            ),
            (
                "carillon_redis_command_seconds_bucket{le=\"0.1\"} 90\ncarillon_redis_command_seconds_bucket{le=\"1\"} 100",
                .slowRedis
            ),
        ] as [(String, HealthRule?)])
    func eachRuleHoldsBeyondItsBoundAlone(text: String, rule: HealthRule?) {
        #expect(Self.notes(text).map(\.rule) == [rule].compactMap { $0 }, "\(text)")
    }

    /// Counters count since the start: what grew before the window says nothing.
    @Test func whatHappenedBeforeTheWindowIsOver() {
        let text = Self.attempts(100, 900) + "carillon_dlq_records_total{reason=\"x\"} 1000\n"
        #expect(Self.notes(text, after: text).isEmpty)
        #expect(HealthLook(Self.look(180, text), after: nil, wallSeconds: 0).notes.isEmpty)
    }

    @Test func aNoteHasItsFiguresAndTheMostFrequentReason() {
        let text = """
            \(Self.attempts(100, 900))
            carillon_decisions_total{app="im",verdict="rejected",reason="Unregistered"} 800
            carillon_decisions_total{app="im",verdict="rejected",reason="BadDeviceToken"} 100
            """
        let notes = Self.notes(text)
        #expect(
            notes.map(\.text) == ["APNs accepted only 10 % of 1000 pushes in the last 3 min, most by Unregistered"])
        #expect(notes.first?.subject == .app("im", environment: "production"))
        #expect(Self.notes(Self.attempts(0, 30)).first?.alert == "CarillonNothingAccepted")
    }

    /// Pushes that only wait behind others, or for a limit of the app, are no cause.
    @Test func aNoteNamesWhatAPNsAnsweredAndItsRunbook() throws {
        let text = """
            \(Self.attempts(900, 100))
            carillon_decisions_total{app="im",verdict="parked",reason="behind"} 5000
            carillon_decisions_total{app="im",verdict="parked",reason="retry_after"} 90
            """
        let note = try #require(Self.notes(text).first)
        #expect(note.text.hasSuffix("most by retry_after") && note.alert == "CarillonNothingAccepted")
    }

    /// Hours of good answers do not hide what APNs answers now, and an old cause does not stand for a new one.
    @Test func theLastHalfMinuteComesFirst() throws {
        func look(_ seconds: UInt64, _ accepted: Int, _ rejected: Int, tooMany: Int) -> WorkerLook {
            Self.look(
                seconds,
                """
                \(Self.attempts(accepted, rejected))
                carillon_decisions_total{app="im",verdict="rejected",reason="BadDeviceToken"} 100
                carillon_retries_total{app="im",env="production",reason="TooManyRequests"} \(tooMany)
                """)
        }
        func notes(_ accepted: Int, _ rejected: Int, tooMany: Int) -> [String] {
            HealthLook(
                look(180, accepted, rejected, tooMany: tooMany), after: look(0, 0, 0, tooMany: 0),
                recent: look(150, 5000, 100, tooMany: 0), wallSeconds: 1_000_000
            ).notes.map(\.text)
        }
        #expect(notes(5019, 100, tooMany: 0) == [])
        #expect(
            notes(5000, 148, tooMany: 48) == [
                "APNs accepted none of 48 pushes in the last 30 s, most by TooManyRequests"
            ])
    }

    /// The rule holds over three minutes; the last half minute shows whether it still does.
    @Test func aNoteIsLiveWhileItsRuleHoldsInTheLastHalfMinute() throws {
        func isLive(_ text: String, recent: String, now: String) throws -> Bool? {
            let look = HealthLook(
                Self.look(180, now), after: Self.look(0, ""), recent: Self.look(150, recent), wallSeconds: 1_000_000)
            return look.isLive(try #require(look.notes.first, "\(text)"))
        }
        let bad = Self.attempts(0, 100)
        #expect(try isLive("few pushes still fail", recent: bad, now: Self.attempts(0, 103)) == true)
        #expect(try isLive("the next is accepted", recent: bad, now: Self.attempts(3, 100)) == false)
        #expect(try isLive("no push shows it", recent: bad, now: bad) == nil)
        let gap = "carillon_kafka_gap_records_total "
        #expect(try isLive("nothing more is lost", recent: gap + "5", now: gap + "5") == false)
        #expect(try isLive("more is lost", recent: gap + "5", now: gap + "6") == true)
        let lag = "carillon_kafka_lag_seconds{topic=\"im.events\"} 61"
        #expect(try isLive("a present value", recent: lag, now: lag) == true)
    }

    @Test func oneThingIsCountedAsOne() {
        let gap = "carillon_kafka_gap_records_total "
        #expect(
            Self.notes(gap + "1").map(\.text) == ["Kafka deleted 1 record before it was read in the last 3 min"])
        #expect(
            Self.notes(gap + "2").map(\.text) == ["Kafka deleted 2 records before they were read in the last 3 min"])
        #expect(FigureText.counted(1, "push") == "1 push" && FigureText.counted(12_400, "push") == "12.4k pushes")
    }

    /// docs/operations.md has each condition in its words.
    @Test func theDocumentationHasEveryCondition() throws {
        let top = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../docs/operations.md")
        let page = try String(contentsOf: top, encoding: .utf8)
        for rule in HealthRule.allCases {
            #expect(
                page.contains("| \(rule.condition) | [\(rule.alert)](runbooks.md#\(rule.alert.lowercased())) |"),
                "\(rule)")
        }
    }
}
