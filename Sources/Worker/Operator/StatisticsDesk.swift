// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import JSON
import PushCore
import Redis

/// The question of `GET /stats`: an app, or all, and a range of time.
package struct StatisticsQuestion: Sendable, Equatable {
    /// Nil: all apps.
    var app: String?
    var fromMs: Int64
    var toMs: Int64
    /// The operator's page needs only the sums by hour.
    var isForPage = false

    enum Reading: Equatable {
        case question(StatisticsQuestion)
        /// The fault, in words.
        case wrong(String)
    }

    static let dayMs: Int64 = 86_400_000

    /// - Parameter query: `app`, `from` and `to`, all optional: the last 24 hours of all apps.
    static func read(_ query: String?, nowMs: Int64) -> Reading {
        guard let fields = HTTPQuery(query) else { return .wrong("the address cannot be read") }
        var times: [String: Int64] = [:]
        for name in ["from", "to"] {
            guard let text = fields[name] else { continue }
            guard let ms = InstantText.milliseconds(text) else {
                return .wrong("\(name) needs a time like 2026-11-22T14:00Z, a date or Unix milliseconds")
            }
            times[name] = ms
        }
        let toMs = times["to"] ?? nowMs
        return .question(
            StatisticsQuestion(app: fields["app"], fromMs: times["from"] ?? toMs - dayMs, toMs: toMs))
    }
}

enum StatisticsAnswer: Sendable {
    /// The answer of `GET /stats`, or a fault of any question.
    case response(HTTPResponse)
    /// The sums of all apps by the start of the hour, Unix ms.
    case hours([Int64: StatisticsNumbers])
}

/// Answers questions about the statistics. For each question it opens its own Redis connection and thread, as the trace box does.
struct StatisticsDesk: Sendable {
    let configuration: Configuration

    private static let stepNanos: UInt64 = 2_000_000_000

    func answer(_ question: StatisticsQuestion) async -> StatisticsAnswer {
        let apps = configuration.apps.map(\.policy.id).filter { question.app == nil || question.app == $0 }
        if apps.isEmpty {
            return .response(HTTPResponse(status: 404, text: "no app \(question.app ?? "") in the configuration\n"))
        }
        var limits = configuration.redis.limits
        limits.commandTimeoutNanos = min(limits.commandTimeoutNanos, Self.stepNanos)
        limits.connectTimeoutNanos = min(limits.connectTimeoutNanos, Self.stepNanos)
        let store: StateReader
        do throws(LoopFault) {
            store = try StateReader(configuration.redis.topology, limits: limits)
        } catch {
            return .response(HTTPResponse(status: 503, text: "\(error.description)\n"))
        }
        let answer: StatisticsAnswer
        do throws(RedisFault) {
            try await store.open()
            answer =
                question.isForPage
                ? .hours(try await hours(StatisticsReads(store), question, apps))
                : .response(try await reports(StatisticsReads(store), question, apps))
        } catch {
            let text = "Redis at \(configuration.redis.place): \(error.publicText)\n"
            answer = .response(HTTPResponse(status: 503, text: text))
        }
        await store.close()
        return answer
    }

    private func hours(
        _ store: StatisticsReads, _ question: StatisticsQuestion, _ apps: [String]
    ) async throws(RedisFault) -> [Int64: StatisticsNumbers] {
        var hours: [Int64: StatisticsNumbers] = [:]
        for app in apps {
            let ofApp = try await store.statisticsByHour(app: app, fromMs: question.fromMs, toMs: question.toMs)
            hours.merge(ofApp, uniquingKeysWith: +)
        }
        return hours
    }

    private func reports(
        _ store: StatisticsReads, _ question: StatisticsQuestion, _ apps: [String]
    ) async throws(RedisFault) -> HTTPResponse {
        var writer = JSONWriter(reservingCapacity: 4096)
        writer.beginObject()
        writer.key("apps")
        writer.beginArray()
        for app in apps {
            let report = try await store.statistics(app: app, fromMs: question.fromMs, toMs: question.toMs)
            report.write(to: &writer)
        }
        writer.endArray()
        writer.endObject()
        return HTTPResponse(contentType: "application/json", body: writer.bytes)
    }
}

/// Answers the questions one after the other, so that many of them are no load for Redis. On the operator's loop.
final class StatisticsQueue {
    private var waiting: [(question: StatisticsQuestion, reply: (StatisticsAnswer) -> Void)] = []
    private var isAsking = false
    private let ask: (StatisticsQuestion) -> Void
    private static let waitingMax = 16

    init(_ ask: @escaping (StatisticsQuestion) -> Void) { self.ask = ask }

    func begin(_ question: StatisticsQuestion, _ reply: @escaping (StatisticsAnswer) -> Void) {
        guard waiting.count < Self.waitingMax else {
            return reply(.response(HTTPResponse(status: 503, text: "too many questions are in progress\n")))
        }
        waiting.append((question, reply))
        next()
    }

    /// The first question is answered, and others that are equal.
    func end(_ answer: StatisticsAnswer) {
        isAsking = false
        guard let first = waiting.first?.question else { return }
        let answered = waiting.filter { $0.question == first }
        waiting.removeAll { $0.question == first }
        for one in answered { one.reply(answer) }
        next()
    }

    private func next() {
        guard !isAsking, let first = waiting.first else { return }
        isAsking = true
        ask(first.question)
    }
}
