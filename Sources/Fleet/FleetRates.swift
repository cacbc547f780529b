// SPDX-License-Identifier: Apache-2.0
/// The growth of counters, over all workers that answered twice and did not restart in between.
struct FleetRates {
    private struct Pair {
        var before: MetricsPage
        var now: MetricsPage
        var seconds: Double
    }

    private let pairs: [Pair]

    init(_ looks: [WorkerLook], _ before: [String: WorkerLook]) {
        pairs = looks.compactMap { look in
            guard let earlier = before[look.address], let now = look.metrics, let then = earlier.metrics,
                look.atNanos > earlier.atNanos,
                // A new process counts from 0.
                now.sum(FleetMetrics.started) == then.sum(FleetMetrics.started)
            else { return nil }
            return Pair(before: then, now: now, seconds: Double(look.atNanos - earlier.atNanos) / 1e9)
        }
    }

    /// Nil without an earlier look.
    var longestSeconds: Double? { pairs.map(\.seconds).max() }

    /// Per second; nil without an earlier look or without such a counter.
    func rate(_ name: String) -> Double? {
        let known = pairs.filter { $0.now.sum(name) != nil }
        guard !known.isEmpty else { return nil }
        return known.reduce(0) { sum, pair in
            let grown = (pair.now.sum(name) ?? 0) - (pair.before.sum(name) ?? 0)
            return sum + max(0, grown) / pair.seconds
        }
    }

    /// Grouped by the values of some labels (an absent one is empty), fastest first.
    func rates(_ name: String, by labels: [String]) -> [(labels: [String], rate: Double)] {
        var sums: [[String]: Double] = [:]
        for pair in pairs {
            var grown: [[String]: Double] = [:]
            for series in pair.now.series(name) { grown[labels.map { series[$0] ?? "" }, default: 0] += series.value }
            for series in pair.before.series(name) {
                grown[labels.map { series[$0] ?? "" }, default: 0] -= series.value
            }
            for (key, growth) in grown { sums[key, default: 0] += max(0, growth) / pair.seconds }
        }
        return sums.map { (labels: $0.key, rate: $0.value) }.sorted {
            $0.rate != $1.rate ? $0.rate > $1.rate : $0.labels.lexicographicallyPrecedes($1.labels)
        }
    }

    /// Quantiles of a histogram's growth, over all of its series that `isWanted` accepts; nil without growth.
    ///
    /// As Prometheus' `histogram_quantile`: linear within a bucket; beyond the last bound, that bound.
    func spread(
        _ name: String, where isWanted: (MetricsPage.Series) -> Bool = { _ in true }
    ) -> FleetView.Spread? {
        var buckets: [Double: Double] = [:]
        for pair in pairs {
            for series in pair.now.series(name + "_bucket") where isWanted(series) {
                buckets[bound(series), default: 0] += series.value
            }
            for series in pair.before.series(name + "_bucket") where isWanted(series) {
                buckets[bound(series), default: 0] -= series.value
            }
        }
        let sorted = buckets.sorted { $0.key < $1.key }
        guard let p50 = Self.quantile(0.5, sorted), let p99 = Self.quantile(0.99, sorted) else { return nil }
        return FleetView.Spread(p50: p50, p99: p99)
    }

    private func bound(_ series: MetricsPage.Series) -> Double {
        series["le"].flatMap { Double($0) }.flatMap { $0.isNaN ? nil : $0 } ?? .infinity
    }

    private static func quantile(_ share: Double, _ buckets: [(key: Double, value: Double)]) -> Double? {
        guard let total = buckets.last?.value, total > 0 else { return nil }
        let wanted = share * total
        var (below, under) = (0.0, 0.0)
        for (bound, count) in buckets {
            if count >= wanted {
                if bound == .infinity { return below }
                return count > under ? below + (bound - below) * (wanted - under) / (count - under) : bound
            }
            (below, under) = (bound, count)
        }
        return below
    }
}
