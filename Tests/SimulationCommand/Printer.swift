// SPDX-License-Identifier: Apache-2.0
import Simulation

/// Prints results: as text, or as JSON with an object a line.
struct Printer {
    let isJSON: Bool

    func failed(_ report: Simulation.Report, isRepeatable: Bool, smaller: Simulation.Report?) {
        guard isJSON else {
            print(report.plan.text)
            for violation in report.violations { print("  \(violation.rule): \(violation.text)") }
            print(isRepeatable ? "  a second run is equal" : "  A SECOND RUN DIFFERS")
            guard let smaller else { return }
            print("  smaller: \(smaller.plan.text)")
            for violation in smaller.violations { print("    \(violation.rule): \(violation.text)") }
            return
        }
        let violations = report.violations.map {
            "{\"rule\":\(Self.quoted($0.rule)),\"text\":\(Self.quoted($0.text)),\"message\":\(Self.quoted($0.message))}"
        }
        print(
            "{\"seed\":\(report.plan.seed),\"repeatable\":\(isRepeatable),\"plan\":\(Self.quoted(report.plan.text)),"
                + "\"violations\":[\(violations.joined(separator: ","))]"
                + (smaller.map { ",\"smaller\":\(Self.quoted($0.plan.text))" } ?? "") + "}")
    }

    /// How often each combination occurred, and those that never did.
    func coverage(_ coverage: Coverage) {
        for (subject, names) in coverage.counts.sorted(by: { $0.key < $1.key }) {
            let counts = names.sorted { $0.value > $1.value }.map { "\($0.key) \($0.value)" }
            print("\(subject): \(counts.joined(separator: ", "))")
        }
        for (subject, names) in coverage.missing { print("NEVER, \(subject): \(names.joined(separator: ", "))") }
    }

    func summary(_ total: Total) {
        let failed = total.failed.map(String.init)
        guard isJSON else {
            return print(
                "\(total.seeds) seeds, \(failed.count) failed\(failed.isEmpty ? "" : ": " + failed.joined(separator: " ")); "
                    + "\(total.records) records, \(Int(total.worldSeconds)) s of the world in \(Int(total.seconds * 1000)) ms: "
                    + "\(total.seedsPerMinute) seeds a minute, \(total.turnsPerSecond) turns of loops a second")
        }
        print(
            "{\"seeds\":\(total.seeds),\"failed\":[\(failed.joined(separator: ","))],\"records\":\(total.records),"
                + "\"turns\":\(total.turns),\"world_s\":\(Int(total.worldSeconds)),\"took_ms\":\(Int(total.seconds * 1000)),"
                + "\"seeds_per_minute\":\(total.seedsPerMinute),\"turns_per_second\":\(total.turnsPerSecond)}")
    }

    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": quoted += "\\\(scalar)"
            case "\n": quoted += "\\n"
            default: if scalar.value >= 0x20 { quoted.unicodeScalars.append(scalar) }
            }
        }
        return quoted + "\""
    }
}

/// What all runs came to.
struct Total {
    var seeds = 0
    var failed: [UInt64] = []
    var records = 0
    var turns = 0
    var coverage = Coverage()
    var worldSeconds = 0.0
    /// Real time.
    var seconds = 0.001

    var seedsPerMinute: Int { Int(Double(seeds) * 60 / seconds) }
    var turnsPerSecond: Int { Int(Double(turns) / seconds) }

    mutating func add(_ report: Simulation.Report) {
        seeds += 1
        records += report.events
        turns += report.turns
        worldSeconds += report.seconds
        coverage.add(report.coverage)
        if !report.violations.isEmpty { failed.append(report.plan.seed) }
    }
}
