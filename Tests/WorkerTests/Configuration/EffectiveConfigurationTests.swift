// SPDX-License-Identifier: Apache-2.0
import Foundation
import JSON
import PushCore
import Testing
import Worker
import YAML

/// `check --print`.
struct EffectiveConfigurationTests {
    private static let good = ConfigurationProblemTests.good

    private static func effective(
        _ yaml: String = good, _ environment: [String: String] = [:]
    ) throws -> EffectiveConfiguration {
        try Configuration.effective(Array(yaml.utf8), source: "f", environment: environment).get()
    }

    private static func read(_ yaml: String) throws -> Configuration {
        try Configuration.read(Array(yaml.utf8), source: "g").get()
    }

    /// All keys of a tree, as `apps.0.limits.rate`.
    private static func keys(_ node: YAMLNode, _ path: String = "") -> Set<String> {
        func name(_ key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }
        switch node.value {
        case .scalar: return []
        case .sequence(let items):
            return items.indices.reduce(into: []) { $0.formUnion(keys(items[$1], name(String($1)))) }
        case .mapping(let entries):
            return entries.reduce(into: []) { found, entry in
                found.insert(name(entry.key))
                found.formUnion(keys(entry.value, name(entry.key)))
            }
        }
    }

    private static func tree(_ text: String) throws -> YAMLNode {
        try YAMLDocument(parsing: Array(text.utf8), source: "tree").root
    }

    @Test func everyKeyOfTheSampleIsInEffectWithoutBeingWritten() throws {
        let root = #filePath.split(separator: "/Tests/WorkerTests/").first.map(String.init) ?? "."
        let sample = try Self.tree(String(contentsOfFile: root + "/Config/carillon.yaml", encoding: .utf8))
        let missing = Self.keys(sample).subtracting(Self.keys(try Self.tree(Self.effective().text)))
        // Neither has a default, and each kind of conversation has none of its own.
        #expect(missing.sorted() == ["apps.0.default_levels.group", "apps.0.default_levels.p2p", "apps.0.templates"])
    }

    @Test func thePrintedConfigurationReadsAsTheSame() throws {
        let (bare, printed) = (try Self.read(Self.good), try Self.read(Self.effective().text))
        #expect(printed.kafka.topics == bare.kafka.topics && printed.kafka.group == bare.kafka.group)
        #expect(printed.kafka.options == bare.kafka.options && printed.kafka.brokers == bare.kafka.brokers)
        #expect(printed.redis.topology == bare.redis.topology && printed.redis.timeoutMs == bare.redis.timeoutMs)
        #expect(printed.results == bare.results && printed.stateResults == bare.stateResults)
        #expect(printed.stopsAtTokenLoss == bare.stopsAtTokenLoss && printed.trace == bare.trace)
        #expect(printed.http == bare.http && printed.waivers == bare.waivers && printed.shards == bare.shards)
        #expect(printed.logLevel == bare.logLevel && printed.window == bare.window)
        #expect(printed.drainSeconds == bare.drainSeconds)
        let (app, other) = (try #require(printed.apps.first), try #require(bare.apps.first))
        #expect("\(app.policy)" == "\(other.policy)" && app.limits == other.limits)
        #expect(app.endpoints == other.endpoints && app.environment == other.environment)
        #expect(app.coalesceSeconds == other.coalesceSeconds && app.sendsDigest == other.sendsDigest)
        #expect(app.credentials.map(\.source) == other.credentials.map(\.source))
        #expect(
            try Self.keys(Self.tree(Self.effective(Self.effective().text).text))
                == Self.keys(Self.tree(Self.effective().text)))
    }

    @Test func eachValueHasItsPlace() throws {
        let text = try Self.effective(Self.good, ["CARILLON__APPS__0__LIMITS__RATE": "7"]).text
        #expect(text.contains("  brokers: \"localhost:9092\"  # f:1\n"))
        #expect(text.contains("      rate: 7  # environment variable CARILLON__APPS__0__LIMITS__RATE\n"))
        #expect(text.contains("      in_flight: 2000  # default\n"))
    }

    @Test func nothingSecretIsPrinted() throws {
        let effective = try Self.effective(
            Self.good,
            [
                "CARILLON__KAFKA__OPTIONS__SASL_PASSWORD": "geheim-1",
                "CARILLON__REDIS__URL": "redis://carillon:geheim-2@127.0.0.1:6379/3",
            ])
        for text in [effective.text, effective.json] {
            #expect(!text.contains("geheim"))
            #expect(text.contains("redis://carillon:(secret)@127.0.0.1:6379/3"))
        }
        #expect(effective.text.contains("sasl.password: \"(secret)\""))
    }

    @Test func oddTextsComeBackAsTheyWere() throws {
        let yaml = Self.good.replacing("id: im", with: #"id: "a #1 \"x\" 👍""#) + "    default_levels: {p2p: -1}\n"
        let printed = try Self.read(Self.effective(yaml).text)
        #expect(printed.apps.first?.policy.id == "a #1 \"x\" 👍")
        #expect(printed.apps.first?.policy.defaultLevels[.p2p] == .all)
        let json = try JSONTree(parsing: Array(Self.effective(yaml).json.utf8))
        #expect(json["apps"]?[0]?["limits"]?["in_flight"]?.int == 2000)
    }

    @Test func aBadConfigurationIsReportedAndNotPrinted() {
        guard case .failure(let fault) = Configuration.effective(Array("kafka: {brkers: x}".utf8), source: "f") else {
            Issue.record("it was printed")
            return
        }
        #expect(fault.problems.contains { $0.text.contains("brokers") })
    }
}
