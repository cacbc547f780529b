// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import JSON
import Processes
import Recording
import Testing

@testable import Bench

/// How a push's time is shared out among stages and commands.
@Suite struct StageCostsTests {
    private static let info = """
        # Commandstats\r
        cmdstat_evalsha:calls=1000,usec=14000,usec_per_call=14.00,rejected_calls=0,failed_calls=0\r
        cmdstat_hgetall:calls=2000,usec=2000,usec_per_call=1.00\r
        cmdstat_hmget:calls=2000,usec=3000,usec_per_call=1.50\r
        cmdstat_get:calls=1000,usec=500,usec_per_call=0.50\r
        cmdstat_set:calls=2000,usec=2400,usec_per_call=1.20\r
        cmdstat_info:calls=2,usec=900,usec_per_call=450\r
        cmdstat_broken:calls=x\r
        cmdstat_cluster|info:calls=1,usec=1\r
        nonsense\r
        """

    private static func metrics(_ seconds: Double) -> MetricsText {
        let stages = StageClock.Stage.work.enumerated().map { index, stage in
            "carillon_stage_seconds_total{stage=\"\(stage.name)\"} \(seconds * Double(index + 1))"
        }
        return MetricsText(
            (stages + [
                "carillon_redis_command_seconds_count{op=\"read\"} 3000",
                "carillon_redis_command_seconds_count{op=\"owner\"} 1000",
                "carillon_redis_command_seconds_count{op=\"claim\"} 1000",
                "carillon_redis_command_seconds_count{op=\"finish\"} 1000",
                "carillon_redis_command_seconds_count{op=\"change\"} 5",
                "carillon_allocations_total 12000",
            ]).joined(separator: "\n"))
    }

    private static var costs: StageCosts {
        StageCosts(
            from: StageCosts.Count(), to: StageCosts.Count(metrics(0.001), info: info), recipients: 1000,
            usage: StageCosts.Usage(shardNanos: 9_000_000, otherNanos: 2_000_000, redisNanos: 30_000_000))
    }

    @Test func theKernelsTimeIsSharedByTheStagesClock() throws {
        let costs = Self.costs
        // Nine stages, one to nine parts of forty-five.
        for (index, stage) in StageClock.Stage.work.enumerated() {
            let micros = try #require(costs.parts[stage]?.workerMicros)
            #expect((micros - 9 * Double(index + 1) / 45).magnitude < 1e-9, "\(stage)")
        }
        #expect(costs.otherThreadsMicros == 2 && costs.allocations == 12)
    }

    @Test func commandsAreThoseOfTheStageThatSendsThem() throws {
        let costs = Self.costs
        let lookup = try #require(costs.parts[.lookup])
        // Of two thousand HMGET one thousand ran within the script.
        #expect(lookup.redisCommands == 3 && (lookup.redisMicros - 3.5).magnitude < 1e-9)
        let claim = try #require(costs.parts[.claim])
        #expect(claim.redisCommands == 2 && (claim.redisMicros - 14.5).magnitude < 1e-9)
        let record = try #require(costs.parts[.record])
        #expect(record.redisCommands == 1 && (record.redisMicros - 1.2).magnitude < 1e-9)
        #expect((costs.redisCommands - 6.005).magnitude < 1e-9)
        // What it spent outside of commands, those of scripts once.
        #expect((costs.redisProtocolMicros - (30 - 19.2)).magnitude < 1e-9)
        #expect(costs.commands.first == StageCosts.Command(name: "evalsha", calls: 1, micros: 14))
        #expect(!costs.commands.contains { $0.name == "info" || $0.name == "broken" })
    }

    /// Of two thousand HMGET one thousand look behind a claim, the others are a recipient's reads, as marks are.
    @Test func claimsWithoutAScriptHaveTheirCommands() throws {
        let info = """
            cmdstat_zadd:calls=1000,usec=3000
            cmdstat_zcard:calls=1000,usec=1000
            cmdstat_hmget:calls=2000,usec=3000
            cmdstat_mget:calls=40,usec=400
            cmdstat_set:calls=1000,usec=1200
            """
        let metrics = MetricsText(
            """
            carillon_redis_command_seconds_count{op="read"} 1040
            carillon_redis_command_seconds_count{op="claim"} 3000
            carillon_redis_command_seconds_count{op="finish"} 1000
            """)
        let costs = StageCosts(
            from: StageCosts.Count(), to: StageCosts.Count(metrics, info: info), recipients: 1000,
            usage: StageCosts.Usage(redisNanos: 30_000_000))
        let claim = try #require(costs.parts[.claim])
        #expect((claim.redisCommands - 3).magnitude < 1e-9 && (claim.redisMicros - 5.5).magnitude < 1e-9)
        let lookup = try #require(costs.parts[.lookup])
        #expect((lookup.redisCommands - 1.04).magnitude < 1e-9 && (lookup.redisMicros - 1.9).magnitude < 1e-9)
        #expect((costs.redisCommands - 5.04).magnitude < 1e-9)
        #expect((costs.redisProtocolMicros - (30 - 8.6)).magnitude < 1e-9)
    }

    /// Its clock goes on while others have its processor.
    @Test func ofRedisTimeCountsWhatItRan() {
        let usage = StageCosts.Usage(shardNanos: 9_000_000, redisNanos: 30_000_000, redisDelayNanos: 10_000_000)
        let costs = StageCosts(
            from: StageCosts.Count(), to: StageCosts.Count(Self.metrics(0.001), info: Self.info), recipients: 1000,
            usage: usage)
        #expect(costs.commands.first == StageCosts.Command(name: "evalsha", calls: 1, micros: 10.5))
        #expect((costs.redisProtocolMicros - (30 - 14.4)).magnitude < 1e-9)
    }

    @Test func aPhaseInWhichNothingHappenedIsNoFault() {
        let none = StageCosts(
            from: StageCosts.Count(), to: StageCosts.Count(), recipients: 0, usage: StageCosts.Usage())
        #expect(none.redisCommands == 0 && none.commands.isEmpty && none.allocations == nil)
        #expect(StageTable([]).isEmpty && StageTable([none]).sum.worker == 0)
    }

    @Test func theTableShowsTheMedianOfTheRounds() throws {
        var dear = Self.costs
        dear.parts[.render]?.workerMicros = 500
        let table = StageTable([Self.costs, dear, Self.costs])
        let render = try #require(table.rows.first { $0.name == "render" })
        #expect(render.worker == Self.costs.parts[.render]?.workerMicros && render.redis == nil)
        #expect((table.sum.worker ?? 0) > 10.9 && (table.sum.worker ?? 0) < 11.1)
        let text = table.text(per: "push")
        for word in ["read", "lookup", "decide", "claim", "render", "send", "record", "evalsha", "allocations"] {
            #expect(text.contains("    \(word) ") || text.contains(word), "\(word)")
        }
        var writer = JSONWriter()
        writer.beginObject()
        table.write(to: &writer)
        writer.endObject()
        let json = try JSONTree(parsing: writer.bytes)
        #expect(json["stages"]?.array?.count == table.rows.count + 1 && json["allocations"] != nil)
    }

    @Test func thePageIsWholeInItself() throws {
        var settings = try BenchSettings(
            try Arguments(["--html", "x", "--events", "1000"], spec: BenchCommand.spec))
        #expect(settings.showsStages && settings.htmlPath == "x")
        settings.rounds = 1
        var report = BenchReport(settings: settings)
        var outcome = ThroughputPhase.Outcome()
        (outcome.pushes, outcome.recipients, outcome.acceptedByServer, outcome.seconds) = (1000, 1000, 1000, 0.1)
        outcome.stages = Self.costs
        report.throughput = [outcome]
        let html = BenchPage(report).html
        #expect(html.hasPrefix("<!doctype html>") && html.contains("</html>") && html.contains("<svg"))
        #expect(html.contains(">claim</text>") && html.contains("evalsha") && html.contains("1\u{202F}000 pushes"))
        #expect(!html.contains("<script") && !html.contains("http://") && !html.contains("src="))
        let json = try JSONTree(parsing: Array(report.json.utf8))
        #expect(json["where"]?["stages"]?.array?.isEmpty == false)
    }

    @Test func `a bench is compared by its medians`() throws {
        let arguments = ["--html", "x", "--compare", "y", "--events", "1000", "--group", "10"]
        let settings = try BenchSettings(try Arguments(arguments, spec: BenchCommand.spec))
        #expect(
            settings.comparePath == "y" && settings.texts.contains("events 1000") && settings.texts.last == "group 10")
        func report(_ seconds: [Double], _ startedMs: Int64) -> BenchReport {
            var report = BenchReport(settings: settings)
            report.origin = ReportOrigin(startedMs: startedMs, version: "1.0.0", settings: settings.texts)
            report.throughput = seconds.map { seconds in
                var outcome = ThroughputPhase.Outcome()
                (outcome.pushes, outcome.recipients, outcome.acceptedByServer, outcome.seconds) = (
                    1000, 1000, 1000, seconds
                )
                return outcome
            }
            return report
        }
        let earlier = report([1, 2, 5], 0)
        let folder = try TemporaryFolder()
        let path = try folder.write(Array(earlier.json.utf8), to: "old.json")
        let comparison = try ReportComparison(readingFrom: path, BenchPage.figures)
        let html = BenchPage(report([1], 60_000), comparedBy: comparison).html
        #expect(html.contains("<td>a second</td><td>500</td><td>1\u{202F}000</td><td>+100 %</td>"), "\(html)")
        #expect(html.contains("1970-01-01 00:01 UTC, carillon 1.0.0") && !html.contains("settings are others"))
        #expect(throws: Arguments.UsageError.self) {
            try BenchSettings(try Arguments(["--compare", "y"], spec: BenchCommand.spec))
        }
        #expect(throws: ReportComparison.Fault.self) {
            try ReportComparison(readingFrom: path + "-absent", BenchPage.figures)
        }
    }

    @Test(arguments: [["--apns"], ["--decide"]]) func stagesAreOfTheWholePathOnly(words: [String]) throws {
        let arguments = try Arguments(words + ["--stages"], spec: BenchCommand.spec)
        #expect(throws: Arguments.UsageError.self) { try BenchSettings(arguments) }
    }
}
