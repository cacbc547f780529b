// SPDX-License-Identifier: Apache-2.0
internal import Telemetry

/// A kind of command in `carillon_redis_command_seconds{op}`. Ask `RedisClient.operation` for it once.
public struct RedisOperation: Sendable, Equatable {
    let index: UInt8

    /// Commands without a name.
    public static var other: RedisOperation { RedisOperation(index: 0) }
}

/// The client's metrics. Without a registry they are counted but not exported. Loop-bound.
///
/// A reference type: it is used once per reply, and copying a value with so many parts would be expensive.
final class RedisMetrics {
    private let registry: MetricsRegistry?
    private var names: [String] = []
    private var seconds: [Histogram] = []
    private var errors: [String: Counter] = [:]
    private var redirects: [String: Counter] = [:]
    /// `node`, for a cluster node.
    private let labels: [(String, String)]
    let depth: Gauge
    let connects: Counter

    /// Fault counters start at 0, because a rate needs a first value. A cluster has many nodes, so for each only the
    /// cluster's own errors start at 0, and the rest with the first occurrence.
    ///
    /// - Parameter node: a cluster node; nil for a single server.
    init(_ registry: MetricsRegistry?, node: String? = nil) {
        self.registry = registry
        let labels = node.map { [("node", $0)] } ?? []
        self.labels = labels
        depth =
            registry?.gauge(
                "carillon_redis_pipeline_depth", help: "Commands waiting for Redis' reply.", labels: labels) ?? Gauge()
        connects =
            registry?.counter(
                "carillon_redis_connects_total", help: "Connections to Redis that became usable.", labels: labels)
            ?? Counter()
        _ = operation("other")
        for code in RedisFault.Code.all {
            if node == nil { count(code, 0) } else if RedirectRule.isAbout(code) { countRedirect(code, 0) }
        }
    }

    /// The operation of that name. Beyond 255 names all are `other`.
    func operation(_ name: String) -> RedisOperation {
        if let known = names.firstIndex(of: name) { return RedisOperation(index: UInt8(known)) }
        guard names.count < 255 else { return .other }
        let bounds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2]
        let cell =
            registry?.histogram(
                "carillon_redis_command_seconds", help: "Time from command to reply, by kind of command.",
                labels: [("op", name)] + labels, bounds: bounds) ?? Histogram(bounds: bounds)
        names.append(name)
        seconds.append(cell)
        return RedisOperation(index: UInt8(names.count - 1))
    }

    func observe(_ operation: UInt8, nanos: UInt64) {
        let index = Int(operation)
        if index < seconds.count { seconds[index].observe(nanos) }
    }

    func count(_ code: RedisFault.Code, _ number: UInt64 = 1) {
        if let cell = errors[code.name] { return cell.add(number) }
        let cell =
            registry?.counter(
                "carillon_redis_errors_total", help: "Commands and connections that failed, by kind of fault.",
                labels: [("code", code.name)] + labels) ?? Counter()
        cell.add(number)
        errors[code.name] = cell
    }

    /// A node did not execute a command because of the cluster's state.
    func countRedirect(_ code: RedisFault.Code, _ number: UInt64 = 1) {
        if let cell = redirects[code.name] { return cell.add(number) }
        let cell =
            registry?.counter(
                "carillon_redis_redirects_total",
                help: "Commands that a node of the cluster redirected or deferred, by error.",
                labels: [("code", code.name)] + labels) ?? Counter()
        cell.add(number)
        redirects[code.name] = cell
    }

    /// The operations with names so far, in the order of their indices.
    var operations: [String] { names }
}
