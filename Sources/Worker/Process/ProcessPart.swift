// SPDX-License-Identifier: Apache-2.0
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

    public var reasons: [String] { problems.map(\.text) }

    /// Each alert of its problems once.
    public var alerts: [String] {
        var alerts: [String] = []
        for alert in problems.compactMap(\.alert) where !alerts.contains(alert) { alerts.append(alert) }
        return alerts
    }

    mutating func add(_ state: State, _ reason: String, alert: String? = nil, rule: HealthRule? = nil) {
        guard !problems.contains(where: { $0.text == reason }) else { return }
        problems.append(Problem(state: state, text: reason, alert: alert, rule: rule))
    }

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
    public var line: String {
        let untried = isUntried && problems.isEmpty ? " (untried)" : ""
        return "\(title): \(state.rawValue)\(untried)"
            + (problems.isEmpty ? "" : ": " + reasons.joined(separator: "; "))
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
