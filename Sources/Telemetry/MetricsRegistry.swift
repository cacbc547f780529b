// SPDX-License-Identifier: Apache-2.0
/// All metrics of the process: creates cells and writes them as Prometheus text.
///
/// Any thread may ask for cells and scrape; both take a lock, so keep the cells and never ask on a hot path. Each call
/// makes a new cell, and cells of one name and the same labels are added up on scrape: one cell per writing thread.
/// Beyond `seriesMax` lines a request gets a working cell that is not exposed, and
/// `carillon_metrics_series_refused_total` says how many requests that were.
public final class MetricsRegistry: Sendable {
    /// The Content-Type for `exposition()`.
    public static var contentType: String { "text/plain; version=0.0.4; charset=utf-8" }

    /// The type of a metric, for the TYPE line.
    public enum Kind: String, Sendable {
        case counter, gauge, histogram
    }

    enum Cell: Sendable {
        case counter(Counter, scale: Double)
        case gauge(Gauge, Gauge.Combine)
        case histogram(Histogram)
        case reading(@Sendable () -> Double)
    }

    struct Family {
        let kind: Kind
        let help: String
        /// By label text as written, so that a scrape needs no other sort key.
        var series: [String: [Cell]] = [:]
    }

    struct State {
        var families: [String: Family] = [:]
        var seriesCount = 0
        var refused: UInt64 = 0
    }

    /// The largest number of exposed lines (a histogram counts bounds + 3).
    public let seriesMax: Int
    let state = Guarded(State())

    /// An empty registry. `seriesMax` bounds the cost of a scrape (default: the budget of one pod).
    public init(seriesMax: Int = 3000) {
        self.seriesMax = seriesMax
        reading("carillon_metrics_series", help: "Exposed time series.", kind: .gauge) { [weak self] in
            Double(self?.seriesCount ?? 0)
        }
        reading(
            "carillon_metrics_series_refused_total", help: "Cells not exposed because of the series cap.",
            kind: .counter
        ) { [weak self] in
            Double(self?.seriesRefused ?? 0)
        }
    }

    /// A new counter cell. With `scale` 1e-9 it counts nanoseconds and shows seconds.
    public func counter(
        _ name: String, help: String, labels: [(String, String)] = [], scale: Double = 1
    ) -> Counter {
        let cell = Counter()
        add(.counter(cell, scale: scale), name, help, .counter, labels, lines: 1)
        return cell
    }

    /// A new gauge cell. `combine` says how the cells of one series combine to one value.
    public func gauge(
        _ name: String, help: String, labels: [(String, String)] = [], combine: Gauge.Combine = .sum
    ) -> Gauge {
        let cell = Gauge()
        add(.gauge(cell, combine), name, help, .gauge, labels, lines: 1)
        return cell
    }

    /// A new histogram cell; see `Histogram.init` for bounds, scale and precision.
    public func histogram(
        _ name: String, help: String, labels: [(String, String)] = [], bounds: [Double],
        scale: Double = 1e-9, precisionBits: Int? = nil
    ) -> Histogram {
        let cell = Histogram(bounds: bounds, scale: scale, precisionBits: precisionBits)
        add(.histogram(cell), name, help, .histogram, labels, lines: bounds.count + 3)
        return cell
    }

    /// A value that is read at each scrape, on the scraping thread. `read` must be quick and must not block.
    public func reading(
        _ name: String, help: String, kind: Kind, labels: [(String, String)] = [],
        _ read: @escaping @Sendable () -> Double
    ) {
        precondition(kind != .histogram, "MetricsRegistry: a reading is a counter or a gauge")
        add(.reading(read), name, help, kind, labels, lines: 1)
    }

    /// The number of lines of a scrape, comments not counted.
    public var seriesCount: Int { state.withLock { $0.seriesCount } }

    /// The number of requests after the limit was reached.
    public var seriesRefused: UInt64 { state.withLock { $0.refused } }

    private func add(
        _ cell: Cell, _ name: String, _ help: String, _ kind: Kind, _ labels: [(String, String)], lines: Int
    ) {
        // Names come from our code, never from outside. The first test finds a bad one.
        precondition(MetricText.isMetricName(name), "MetricsRegistry: bad metric name \(name)")
        let key = MetricText.labels(labels)
        state.withLock { state in
            var family = state.families[name] ?? Family(kind: kind, help: help)
            precondition(family.kind == kind, "MetricsRegistry: \(name) exists with another type")
            if let cells = family.series[key] {
                precondition(Self.alike(cells.first, cell), "MetricsRegistry: \(name) exists with another shape")
                family.series[key] = cells + [cell]
            } else {
                guard state.seriesCount + lines <= seriesMax else {
                    state.refused &+= 1
                    return
                }
                state.seriesCount += lines
                family.series[key] = [cell]
            }
            state.families[name] = family
        }
    }

    private static func alike(_ old: Cell?, _ new: Cell) -> Bool {
        guard case .histogram(let old) = old, case .histogram(let new) = new else { return true }
        return old.bounds == new.bounds && old.scale == new.scale
    }

    // MARK: Exposition

    /// All series as Prometheus text 0.0.4, families and series in a stable order.
    ///
    /// Any thread. Cells are read while their threads write, so two numbers of one scrape may be some nanoseconds
    /// apart. A histogram's `_count` always equals its `+Inf` bucket.
    ///
    /// - Parameter names: the wanted families; nil for all. The names of the process's own begin with `process_`.
    public func exposition(of names: Set<String>? = nil) -> [UInt8] {
        // Copied out first: a reading may use this registry, and the lock is not recursive.
        var families = state.withLock { $0.families }
        if let names { families = families.filter { names.contains($0.key) } }
        var text = ""
        text.reserveCapacity(families.count * 256)
        for (name, family) in families.sorted(by: { $0.key < $1.key }) {
            text += "# HELP \(name) \(MetricText.escaped(family.help, quote: false))\n"
            text += "# TYPE \(name) \(family.kind.rawValue)\n"
            for (labels, cells) in family.series.sorted(by: { $0.key < $1.key }) {
                Self.write(name, labels, cells, to: &text)
            }
        }
        // Reads several files of /proc.
        if names?.contains(where: { $0.hasPrefix("process_") }) ?? true {
            text += ProcessSample.read()?.exposition ?? ""
        }
        return Array(text.utf8)
    }

    /// The sum of all counters of a family with the given label; 0 if there is none. Any thread.
    ///
    /// - Parameter label: name and value of a label; nil for any.
    public func total(_ name: String, label: (name: String, value: String)? = nil) -> Double {
        let wanted = label.map { MetricText.labels([$0]) }
        let series = state.withLock { $0.families[name]?.series } ?? [:]
        return series.reduce(0) { sum, series in
            if let wanted, !(",\(series.key),").contains(",\(wanted),") { return sum }
            return series.value.reduce(sum) { sum, cell in
                if case .counter(let counter, let scale) = cell { sum + Double(counter.value) * scale } else { sum }
            }
        }
    }

    private static func write(_ name: String, _ labels: String, _ cells: [Cell], to text: inout String) {
        let histograms = cells.compactMap { cell -> Histogram? in
            guard case .histogram(let histogram) = cell else { return nil }
            return histogram
        }
        guard histograms.isEmpty else { return write(name, labels, histograms, to: &text) }
        var total: Double?
        for cell in cells {
            switch cell {
            case .counter(let counter, let scale): total = (total ?? 0) + Double(counter.value) * scale
            case .gauge(let gauge, let combine):
                let value = gauge.value
                if value.isNaN { continue }
                switch combine {
                case .sum: total = (total ?? 0) + value
                case .max: total = total.map { Swift.max($0, value) } ?? value
                }
            case .reading(let read): total = (total ?? 0) + read()
            case .histogram: continue
            }
        }
        // Nil for a gauge with an unknown value.
        if let total { line(name, labels, MetricText.number(total), to: &text) }
    }

    private static func write(_ name: String, _ labels: String, _ cells: [Histogram], to text: inout String) {
        guard let bounds = cells.first?.bounds else { return }
        let counts = cells.map(\.bucketCounts)
        let comma = labels.isEmpty ? "" : ","
        var cumulative: UInt64 = 0
        for index in 0...bounds.count {
            for row in counts where index < row.count { cumulative &+= row[index] }
            let limit = index < bounds.count ? MetricText.number(bounds[index]) : "+Inf"
            line(name + "_bucket", labels + comma + "le=\"\(limit)\"", String(cumulative), to: &text)
        }
        line(name + "_sum", labels, MetricText.number(cells.reduce(0) { $0 + $1.sum }), to: &text)
        line(name + "_count", labels, String(cumulative), to: &text)
    }

    private static func line(_ name: String, _ labels: String, _ value: String, to text: inout String) {
        text += name
        if !labels.isEmpty { text += "{\(labels)}" }
        text += " \(value)\n"
    }
}
