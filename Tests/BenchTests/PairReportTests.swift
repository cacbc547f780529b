// SPDX-License-Identifier: Apache-2.0
import Console
import JSON
import Testing

@testable import Bench

/// What `carillon bench --against` makes of two workers' costs.
@Suite struct PairReportTests {
    private static func outcome(worker: UInt64, redis: UInt64, simulator: UInt64, pushes: Int = 100)
        -> ThroughputPhase.Outcome
    {
        var outcome = ThroughputPhase.Outcome()
        outcome.recipients = 100
        outcome.pushes = pushes
        outcome.acceptedByServer = pushes
        outcome.workerNanos = worker * 100_000
        outcome.redisNanos = redis * 100_000
        outcome.simulatorNanos = simulator * 100_000
        return outcome
    }

    private static func report(_ rounds: [PairReport.Round], _ words: String...) throws -> PairReport {
        let arguments = try Arguments(["--events", "100", "--against", "/bin/sh"] + words, spec: BenchCommand.spec)
        return PairReport(settings: try BenchSettings(arguments), rounds: rounds)
    }

    private static let three = [
        PairReport.Round(
            this: outcome(worker: 12, redis: 6, simulator: 4), other: outcome(worker: 10, redis: 5, simulator: 4)),
        PairReport.Round(
            this: outcome(worker: 10, redis: 5, simulator: 4), other: outcome(worker: 10, redis: 5, simulator: 4)),
        PairReport.Round(
            this: outcome(worker: 9, redis: 6, simulator: 4), other: outcome(worker: 12, redis: 6, simulator: 4)),
    ]

    @Test func aRatioIsOfTheSidesOfOneRoundAndItsMedianOfTheRounds() throws {
        let report = try Self.report(Self.three)
        #expect(report.ratios(.worker) == [1.2, 1, 0.75])
        #expect(report.ratios(.workerPerRedis) == [1, 1, 0.75])
        #expect(PairReport.Spread(report.ratios(.worker))?.median == 1)
        #expect(PairReport.Spread(report.ratios(.worker))?.lowest == 0.75)
        #expect(PairReport.Spread(report.ratios(.worker))?.highest == 1.2)
        let json = try JSONTree(parsing: Array(report.json.utf8))
        #expect(json["ratios"]?["worker"]?["highest"]?.double == 1.2)
        #expect(json["rounds"]?.array?.count == 3)
        #expect(json["complete"]?.bool == true)
        let row = report.text.split(separator: "\n").first { $0.hasPrefix("worker  ") }
        #expect(
            row?.split(separator: " ").map(String.init) == ["worker", "10.00", "10.00", "1.000", "0.750", "1.200"])
    }

    @Test func aSideThatLostAPushIsNamedAndTheReportIsNotComplete() throws {
        let lost = PairReport.Round(
            this: Self.outcome(worker: 1, redis: 1, simulator: 1),
            other: Self.outcome(worker: 1, redis: 1, simulator: 1, pushes: 99))
        let report = try Self.report([lost])
        #expect(!report.succeeded)
        #expect(report.text.contains("✗ round 1, against: 100 pushes expected, 99 accepted, 99 at the server"))
    }

    @Test func whereNothingIsSentNoSimulatorIsCompared() throws {
        let report = try Self.report(Self.three, "--group", "10", "--muted")
        #expect(!report.text.contains("simulator"))
        #expect(try JSONTree(parsing: Array(report.json.utf8))["ratios"]?["simulator"] == nil)
    }

    @Test(arguments: ["--apns", "--decide", "--keep"])
    func runsWithoutThroughputAreNotCompared(flag: String) {
        #expect(throws: Arguments.UsageError.self) { try Self.report([], flag) }
    }

    @Test func figuresAreRoundedToTheDigitsAskedFor() {
        #expect(BenchText.fixed(1.0046, digits: 3) == "1.005")
        #expect(BenchText.fixed(12, digits: 2) == "12.00")
        #expect(BenchText.fixed(-0.5, digits: 1) == "-0.5")
        #expect(BenchText.fixed(.nan, digits: 2) == "-")
    }
}
