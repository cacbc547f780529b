// SPDX-License-Identifier: Apache-2.0
import Console
import JSON
import Testing

@testable import Bench

/// What 1:1 messages pay for a giant group, as it is judged and told.
@Suite struct BesideReportTests {
    private static func phase(direct p99Ms: Double, growth: Int = 0) throws -> BesideReport.Phase {
        var phase = BesideReport.Phase(pushes: 100, seconds: 2)
        phase.growth = growth
        phase.isComplete = true
        let page = #"{"direct":{"count":90,"p50":2.5,"p99":\#(p99Ms)},"bulk":{"count":10}}"#
        phase.take(try JSONTree(parsing: Array(page.utf8)))
        return phase
    }

    private static func report(_ rounds: [(Double, Double)], growth: Int = 0) throws -> BesideReport {
        var report = BesideReport(members: 1000, rate: 50)
        for (alone, beside) in rounds {
            report.rounds.append(
                BesideReport.Round(
                    workers: 1, alone: try phase(direct: alone), beside: try phase(direct: beside, growth: growth)))
        }
        return report
    }

    @Test func theMedianOfTheRoundsIsHeldAgainstTheBar() throws {
        let well = try Self.report([(10, 19), (10, 90), (10, 11)])
        #expect(well.ratio == 1.9 && well.succeeded)
        #expect(try Self.report([(10, 21)]).succeeded == false)
        #expect(try Self.report([(10, 10)], growth: 64 << 20).succeeded == false)
        #expect(try Self.report([]).succeeded == false, "nothing was measured")
        var short = try Self.report([(10, 10)])
        short.rounds[0].beside.isComplete = false
        #expect(!short.succeeded && short.text.contains("✗ some messages were not pushed exactly once"))
    }

    @Test func severalWorkersTellTheWorst() throws {
        var phase = try Self.phase(direct: 10)
        phase.take(try JSONTree(parsing: Array(#"{"direct":{"count":5,"p50":9,"p99":7}}"#.utf8)))
        #expect(phase.lanes["direct"] == BesideReport.Latency(count: 95, p50Ms: 9, p99Ms: 10))
        #expect(phase.lanes["bulk"]?.count == 10)
        phase.take(nil)
        #expect(phase.lanes.count == 2)
    }

    @Test func theCostOfAPushIsComparedByTheNumberOfWorkers() throws {
        var report = try Self.report([(10, 10), (10, 10), (10, 90)])
        for (index, micros) in [10.0, 10.5, 10.9].enumerated() {
            report.rounds[index].workers = [1, 2, 4][index]
            report.rounds[index].beside.workerMicros = micros
        }
        // The latency of more workers than the first number is told and not judged.
        #expect(report.ratio == 1 && report.succeeded && report.text.contains("1: 10.00 µs, 2: 10.50 µs, 4: 10.90 µs"))
        report.rounds[2].beside.workerMicros = 11.1
        #expect(
            !report.succeeded && report.text.contains("✗ CPU per push, most / least expensive number of workers: 1.11"))
    }

    /// Every worker asks Kafka whether it pushes or not; with more of them that is more of each push.
    @Test func theCPUOfIdleWorkersIsReportedSeparately() throws {
        var report = try Self.report([(10, 10), (10, 10)])
        for (index, micros) in [11.0, 14.0].enumerated() {
            report.rounds[index].workers = [1, 4][index]
            report.rounds[index].beside.workerMicros = micros
            report.rounds[index].beside.pushes = 20_000
            report.rounds[index].beside.idleShare = [0.01, 0.04][index]
        }
        #expect(report.text.contains("1: 11.00 µs, 4: 14.00 µs; without idle use: 1: 10.00 µs, 4: 10.00 µs"))
        report.rounds[0].beside.idleShare = 5
        #expect(report.rounds[0].beside.netMicros == 0, "it was busier before")
    }

    @Test func itIsPrintedForPeopleAndPrograms() throws {
        let report = try Self.report([(10, 15)])
        #expect(report.text.contains("✓ p99 with group / alone: 1.50 (at most 2)"))
        let json = try JSONTree(parsing: Array(report.json.utf8))
        #expect(json["p99_ratio"]?.double == 1.5 && json["well"]?.bool == true)
        #expect(json["rounds"]?.array?.first?["beside"]?["lanes"]?["direct"]?["count"]?.int == 90)
    }

    @Test func theGroupsMembersAreNotWhoIsWrittenTo() throws {
        let settings = try BenchSettings(try Arguments(["--beside", "1000"], spec: BenchCommand.spec))
        #expect(settings.users == 11_000 && settings.rate == 500)
        let traffic = BenchTraffic(users: settings.users, app: "im", topic: "t")
        for number in [0, 9_999, 10_000, 25_000] {
            let (_, value) = traffic.message(number, series: "s", atMs: 1, receivers: 1000..<11_000)
            let uid = try JSONTree(parsing: Array(value.utf8))["to"]?["uids"]?.array?.first?.string ?? ""
            #expect(Int(uid.dropFirst()) ?? 0 >= 1000, "\(uid)")
        }
    }

    @Test(arguments: [
        ["--workers", "2"], ["--beside", "1000", "--workers", "0,1"], ["--beside", "1000", "--rate", "0"],
        ["--beside", "1000", "--html", "page.html"],
    ])
    func optionsThatExcludeEachOtherAreWrongUsage(words: [String]) throws {
        let arguments = try Arguments(words, spec: BenchCommand.spec)
        #expect(throws: Arguments.UsageError.self) { try BenchSettings(arguments) }
    }
}
