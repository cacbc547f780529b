// SPDX-License-Identifier: Apache-2.0
import Digits
import Fleet

/// A part of the process with its own state for the operator: Kafka, Redis, an app in one environment.
public struct ProcessPart: Sendable, Equatable {
    public enum Name: Sendable, Hashable {
        case kafka, redis
        case app(String, environment: String)
        /// Only while it has a problem, as all below.
        case configuration
        case clock
        /// Records and outcomes.
        case events
        /// The process and its machine.
        case system
        /// A shard that does not turn.
        case loop

        init(_ subject: HealthNote.Subject) {
            switch subject {
            case .kafka: self = .kafka
            case .redis: self = .redis
            case .events: self = .events
            case .system: self = .system
            case .app(let id, let environment): self = .app(id, environment: environment)
            }
        }

        /// In the order of the lines.
        static let temporary: [Name] = [.events, .configuration, .clock, .system, .loop]
    }

    /// Contract section 9.
    public enum State: String, Sendable {
        case ok
        /// It needs attention, but the process works.
        case degraded
        /// The process cannot work.
        case down

        /// The value of the metric `carillon_ready`.
        var number: Double {
            switch self {
            case .ok: 1
            case .degraded: 0.5
            case .down: 0
            }
        }
    }

    /// A problem of the part.
    public struct Problem: Sendable, Equatable {
        public var state: State
        /// The cause in words.
        public var text: String
        /// The alert with the runbook for it.
        public var alert: String?
        /// The condition that holds, of those over the last minutes.
        var rule: HealthRule?
        /// Unix ms: since when the problem is known; nil in a snapshot that nobody has dated.
        var sinceMs: Int64?
        /// Unix ms: it has ended, and is shown for the minutes after it; nil while it lasts.
        var endedMs: Int64?
        /// Whether the problem stops this part alone, while the process works.
        var isOwn = false

        /// Live ones first, the worst first. The lowest is the most urgent.
        var rank: Int { endedMs == nil ? (state == .down ? 0 : 1) : 2 }

        /// `since 14:02:11` (UTC), or `ended 40 s ago`.
        func time(nowMs: Int64) -> String? { ended(nowMs: nowMs) ?? since(nowMs: nowMs) }

        /// `now, since 14:02:11`, or `since 14:02:11, ended 40 s ago`.
        func course(nowMs: Int64) -> String {
            let times = [endedMs == nil ? "now" : nil, since(nowMs: nowMs), ended(nowMs: nowMs)]
            return times.compactMap { $0 }.joined(separator: ", ")
        }

        private func ended(nowMs: Int64) -> String? { endedMs.map { "ended \(AgeText.short(nowMs &- $0)) ago" } }

        private func since(nowMs: Int64) -> String? {
            sinceMs.map { "since \(InstantText.timeOrDate(ms: $0, nowMs: nowMs))" }
        }
    }

    public var name: Name
    /// The problems; empty if `ok`.
    public private(set) var problems: [Problem] = []
    /// It was never needed, so nothing is known of it.
    public var isUntried = false

    init(_ name: Name) { self.name = name }

    public var state: State {
        problems.contains { $0.state == .down } ? .down : problems.isEmpty ? .ok : .degraded
    }

    /// The process cannot work with it.
    var stopsProcess: Bool { problems.contains { $0.state == .down && !$0.isOwn } }

    public var reasons: [String] { problems.map(\.text) }

    /// Each alert of its problems once.
    public var alerts: [String] {
        var alerts: [String] = []
        for alert in problems.compactMap(\.alert) where !alerts.contains(alert) { alerts.append(alert) }
        return alerts
    }

    mutating func add(_ state: State, _ reason: String, alert: String? = nil, isOwn: Bool = false) {
        add(Problem(state: state, text: reason, alert: alert, isOwn: isOwn))
    }

    /// A text once. Behind those that are as urgent or more.
    mutating func add(_ problem: Problem) {
        guard !problems.contains(where: { $0.text == problem.text }) else { return }
        problems.insert(problem, at: problems.firstIndex { $0.rank > problem.rank } ?? problems.count)
    }

    /// Notes since when each problem is known.
    mutating func date(by times: inout ProblemTimes) {
        for index in problems.indices { problems[index].sinceMs = times.since(problems[index], of: name) }
    }

    /// The most urgent problem's rank; without one behind all.
    var rank: Int { problems.first?.rank ?? 3 }

    public var title: String {
        switch name {
        case .kafka: "kafka"
        case .redis: "redis"
        case .configuration: "configuration"
        case .clock: "clock"
        case .events: "events"
        case .system: "system"
        case .loop: "loop"
        case .app(let id, let environment): "app \(id) \(environment)"
        }
    }

    /// Its line in `/readyz`.
    ///
    /// - Parameter nowMs: the snapshot's time.
    func line(nowMs: Int64) -> String {
        let words = problems.map { problem in problem.text + (problem.time(nowMs: nowMs).map { " (\($0))" } ?? "") }
        return "\(title): \(state.rawValue)" + (words.isEmpty ? "" : ": " + words.joined(separator: "; "))
    }

    /// Labels of `carillon_ready`.
    var labels: [(String, String)] {
        switch name {
        case .kafka: [("part", "kafka")]
        case .redis: [("part", "redis")]
        case .configuration: [("part", "configuration")]
        case .clock: [("part", "clock")]
        case .events: [("part", "events")]
        case .system: [("part", "system")]
        case .loop: [("part", "loop")]
        case .app(let id, let environment): [("part", "apns"), ("app", id), ("env", environment)]
        }
    }
}
