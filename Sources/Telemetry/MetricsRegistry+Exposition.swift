// SPDX-License-Identifier: Apache-2.0
extension MetricsRegistry {
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
