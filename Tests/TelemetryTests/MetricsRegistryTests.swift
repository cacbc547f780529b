// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Telemetry

struct MetricsRegistryTests {
    private func lines(_ registry: MetricsRegistry, _ prefix: String) -> [String] {
        String(decoding: registry.exposition(), as: UTF8.self).split(separator: "\n").map(String.init)
            .filter { $0.hasPrefix(prefix) || $0.hasPrefix("# HELP " + prefix) || $0.hasPrefix("# TYPE " + prefix) }
    }

    @Test func cellsOfTheSameSeriesAreAddedUp() {
        let registry = MetricsRegistry()
        for amount in 1...3 as ClosedRange<UInt64> {
            registry.counter("t_total", help: "Things.", labels: [("b", "2"), ("a", "1")]).add(amount)
        }
        registry.counter("t_total", help: "Things.", labels: [("a", "1"), ("b", "2")]).addShared(4)
        registry.counter("t_total", help: "Things.", labels: [("a", "0")]).add(7)
        #expect(
            lines(registry, "t_total") == [
                "# HELP t_total Things.", "# TYPE t_total counter", "t_total{a=\"0\"} 7",
                "t_total{a=\"1\",b=\"2\"} 10",
            ])
    }

    @Test func gaugesAddUpOrShowTheWorst() {
        let registry = MetricsRegistry()
        for value in [3, 5, 4] {
            registry.gauge("g_sum", help: "h").set(value)
            registry.gauge("g_max", help: "h", combine: .max).set(value)
        }
        registry.gauge("g_neg", help: "h", combine: .max).set(-2.5)
        #expect(lines(registry, "g_").filter { !$0.hasPrefix("#") } == ["g_max 5", "g_neg -2.5", "g_sum 12"])
    }

    @Test func aGaugeThatNobodyKnowsHasNoSeries() {
        let registry = MetricsRegistry()
        let sums = (0..<2).map { _ in registry.gauge("g_sum", help: "h") }
        let most = (0..<2).map { _ in registry.gauge("g_max", help: "h", combine: .max) }
        for gauge in sums + most { gauge.set(4) }
        for gauges in [sums, most] { gauges[0].setUnknown() }
        #expect(lines(registry, "g_").filter { !$0.hasPrefix("#") } == ["g_max 4", "g_sum 4"])
        for gauges in [sums, most] { gauges[1].setUnknown() }
        #expect(lines(registry, "g_").filter { !$0.hasPrefix("#") } == [])
        sums[0].set(1)
        #expect(lines(registry, "g_").filter { !$0.hasPrefix("#") } == ["g_sum 1"])
    }

    @Test func histogramsAreCumulativeAndSummed() {
        let registry = MetricsRegistry()
        for nanos in [1_000_000, 2_000_000_000, 90_000_000_000] as [UInt64] {
            registry.histogram("h_seconds", help: "h", labels: [("op", "get")], bounds: [0.001, 2.5]).observe(nanos)
        }
        #expect(
            lines(registry, "h_seconds").dropFirst(2) == [
                "h_seconds_bucket{op=\"get\",le=\"0.001\"} 1", "h_seconds_bucket{op=\"get\",le=\"2.5\"} 2",
                "h_seconds_bucket{op=\"get\",le=\"+Inf\"} 3", "h_seconds_sum{op=\"get\"} 92.001",
                "h_seconds_count{op=\"get\"} 3",
            ])
    }

    @Test func labelValuesAndHelpCannotBreakOutOfTheirLine() {
        let registry = MetricsRegistry()
        registry.counter("x_total", help: "back\\slash\nline", labels: [("l", "a\"b\\c\nx_total 9")]).add()
        #expect(
            lines(registry, "x_total") == [
                "# HELP x_total back\\\\slash\\nline", "# TYPE x_total counter",
                "x_total{l=\"a\\\"b\\\\c\\nx_total 9\"} 1",
            ])
    }

    @Test func beyondTheCapCellsWorkButAreNotShown() {
        let registry = MetricsRegistry(seriesMax: 4)
        let shown = registry.counter("a_total", help: "h", labels: [("n", "1")])
        let histogram = registry.histogram("h", help: "h", bounds: [1])
        _ = registry.counter("a_total", help: "h", labels: [("n", "2")])
        let hidden = registry.counter("a_total", help: "h", labels: [("n", "3")])
        let again = registry.counter("a_total", help: "h", labels: [("n", "1")])
        for cell in [shown, hidden, again] { cell.add() }
        histogram.observe(1)
        #expect(hidden.value == 1)
        #expect(registry.seriesCount == 4)
        #expect(registry.seriesRefused == 2)
        #expect(
            lines(registry, "a_total").filter { !$0.hasPrefix("#") } == ["a_total{n=\"1\"} 2", "a_total{n=\"2\"} 0"])
        #expect(lines(registry, "carillon_metrics_series_refused_total").last?.hasSuffix(" 2") == true)
    }

    @Test func aReadingMayAskTheRegistryItself() {
        let registry = MetricsRegistry()
        registry.reading("r", help: "h", kind: .gauge) { [weak registry] in Double(registry?.seriesCount ?? -1) }
        #expect(lines(registry, "r ").last == "r 3")
    }

    @Test(arguments: [
        (0.0, "0"), (-3, "-3"), (0.25, "0.25"), (1e300, "1e+300"), (.nan, "NaN"), (.infinity, "+Inf"),
        (-.infinity, "-Inf"), (5e-05, "5e-05"),
    ])
    func numbersAreWrittenAsPrometheusReadsThem(value: Double, text: String) {
        #expect(MetricText.number(value) == text)
    }

    @Test(arguments: [("a_b:c9", true), ("9a", false), ("", false), ("a-b", false), ("é", false)])
    func metricNamesAreChecked(name: String, good: Bool) {
        #expect(MetricText.isMetricName(name) == good)
    }

    @Test func theProcessIsMeasured() throws {
        let sample = try #require(ProcessSample.read())
        #expect(sample.cpuSeconds > 0)
        #expect(sample.residentBytes > 1 << 20)
        #expect(sample.virtualBytes >= sample.residentBytes)
        #expect((3...100_000).contains(sample.openFDs))
        #expect(sample.maxFDs >= UInt64(sample.openFDs))
        #expect(sample.threads >= 1)
        #expect(sample.startSeconds > 1_600_000_000)
        #expect(lines(MetricsRegistry(), "process_").count == 21)
    }

    @Test func aMetricFamilyIsWrittenOnceWithSummedCounters() {
        let registry = MetricsRegistry()
        registry.counter("one_total", help: "", labels: [("app", "a"), ("result", "ok")]).add(3)
        registry.counter("one_total", help: "", labels: [("app", "b"), ("result", "ok")], scale: 0.5).add(4)
        registry.counter("one_total", help: "", labels: [("app", "b"), ("result", "not ok")]).add(5)
        registry.gauge("two", help: "").set(7)
        let text = String(decoding: registry.exposition(of: ["one_total"]), as: UTF8.self)
        #expect(text.contains("one_total{") && !text.contains("two") && !text.contains("process_"))
        let ofProcess = String(decoding: registry.exposition(of: ["process_threads"]), as: UTF8.self)
        #expect(!ofProcess.contains("one_total") && ofProcess.contains("process_start_time_seconds "))
        #expect(registry.total("one_total") == 10 && registry.total("none") == 0 && registry.total("two") == 0)
        #expect(registry.total("one_total", label: ("result", "ok")) == 5)
        #expect(registry.total("one_total", label: ("result", "no")) == 0)
        #expect(registry.total("one_total", label: ("app", "b")) == 7)
    }
}
