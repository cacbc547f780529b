/// A part of the process with its own state for the operator: Kafka, Redis, an app in one environment.
public struct ProcessPart: Sendable, Equatable {
    public enum Name: Sendable, Hashable {
        case kafka, redis
        case app(String, environment: String)
        /// Only while it has a problem.
        case configuration
        /// The same.
        case clock
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

    public var name: Name
    public var state = State.ok
    /// The problems in words; empty if `ok`.
    public var reasons: [String] = []

    init(_ name: Name) { self.name = name }

    mutating func add(_ state: State, _ reason: String) {
        if self.state != .down { self.state = state }
        if !reasons.contains(reason) { reasons.append(reason) }
    }

    public var title: String {
        switch name {
        case .kafka: "kafka"
        case .redis: "redis"
        case .configuration: "configuration"
        case .clock: "clock"
        case .app(let id, let environment): "app \(id) \(environment)"
        }
    }

    /// Its line in `/readyz`.
    public var line: String {
        "\(title): \(state.rawValue)" + (reasons.isEmpty ? "" : ": " + reasons.joined(separator: "; "))
    }

    /// Labels of `carillon_ready`.
    var labels: [(String, String)] {
        switch name {
        case .kafka: [("part", "kafka")]
        case .redis: [("part", "redis")]
        case .configuration: [("part", "configuration")]
        case .clock: [("part", "clock")]
        case .app(let id, let environment): [("part", "apns"), ("app", id), ("env", environment)]
        }
    }
}
