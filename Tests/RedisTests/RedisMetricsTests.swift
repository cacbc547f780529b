// SPDX-License-Identifier: Apache-2.0
import Foundation
import Telemetry
import Testing

@testable import Redis

/// What a client's numbers look like before anything happened: a rate needs a first value.
@Suite struct RedisMetricsTests {
    private static func lines(_ registry: MetricsRegistry) -> [String] {
        String(decoding: registry.exposition(), as: UTF8.self).split(separator: "\n").map(String.init)
    }

    @Test func everyFaultCounterIsZeroFromTheStart() {
        let registry = MetricsRegistry()
        let metrics = RedisMetrics(registry)
        let lines = Self.lines(registry)
        for code in RedisFault.Code.all {
            #expect(lines.contains("carillon_redis_errors_total{code=\"\(code.name)\"} 0"), "\(code)")
        }
        #expect(Set(RedisFault.Code.all.map(\.name)).count == RedisFault.Code.all.count)
        #expect(!lines.contains { $0.hasPrefix("carillon_redis_redirects_total") }, "one server sends nobody on")
        metrics.count(.connectionLost(wasSent: false))
        #expect(Self.lines(registry).contains(#"carillon_redis_errors_total{code="connection_lost"} 1"#))
    }

    @Test func aNodesRedirectsStandAtZeroFromTheStart() {
        let registry = MetricsRegistry()
        let metrics = RedisMetrics(registry, node: "a:1")
        let lines = Self.lines(registry)
        for code in ["moved", "ask", "try_again", "cluster_down", "loading", "master_down", "read_only"] {
            #expect(lines.contains("carillon_redis_redirects_total{code=\"\(code)\",node=\"a:1\"} 0"), "\(code)")
        }
        metrics.countRedirect(.moved)
        #expect(Self.lines(registry).contains(#"carillon_redis_redirects_total{code="moved",node="a:1"} 1"#))
    }

    /// Rules and dashboard are checked against this list.
    @Test func aNodesMetricsMatchTheList() throws {
        let registry = MetricsRegistry()
        let metrics = RedisMetrics(registry, node: "a:1")
        metrics.count(.timeout)
        let root = #filePath.dropLast("/Tests/RedisTests/RedisMetricsTests.swift".count)
        let list = try String(contentsOfFile: root + "/deploy/monitoring/metrics-cluster.txt", encoding: .utf8)
        var exported: Set<String> = []
        for line in Self.lines(registry) where !line.hasPrefix("#") {
            guard let brace = line.firstIndex(of: "{"), let end = line.lastIndex(of: "}") else { continue }
            let name = String(line[..<brace].replacing(/_(bucket|sum|count)$/, with: ""))
            let labels = line[line.index(after: brace)..<end].split(separator: ",")
                .map { String($0.prefix { $0 != "=" }) }.filter { $0 != "le" }.sorted()
            let kind =
                name.hasSuffix("_seconds") ? "histogram" : name.hasSuffix("_total") ? "counter" : "gauge"
            exported.insert(([name, kind] + labels).joined(separator: " "))
        }
        #expect(exported == Set(list.split(separator: "\n").map(String.init)))
        withExtendedLifetime(metrics) {}
    }
}
