// SPDX-License-Identifier: Apache-2.0
import Fleet
import Foundation
import JSON
import Redis
import Telemetry
import Testing

@testable import Worker

@Suite struct StatusPageTests {
    static let hostile = #"<script>alert("x")</script>'&\#u{202E}\#n"#

    @Test func everyPartIsThere() {
        let page = StatusPage(PageWorld.facts("im")).markup.html
        for id in [
            "state", "place", "health", "flow", "outcomes", "stats", "dead-letters", "limits", "ask", "lanes", "lag",
            "apns", "credentials", "redis", "kafka", "apps", "process",
        ] {
            #expect(page.components(separatedBy: "id=\"\(id)\"").count == 2, "\(id)")
        }
        for words in [
            "<h1>Carillon</h1>", "down", "brokers do not answer", "a machine",
            "im0: 12 pushes accepted, 3 opened",
            "removal of dead tokens is stopped, too many by one cause: im",
            "a changed one is not in use", "in 3 days",
            "im: 1234 records",
            "half within", "0 of 1 shards are connected", "paused", ">5<span class=\"unit\"> a second</span>",
            "commands wait for Redis; reading stops", "direct</th>", "librdkafka", "<label for=\"ask-user\">",
        ] {
            #expect(page.contains(words), "\(words)")
        }
        #expect(page.components(separatedBy: "<svg").count == 6, "four graphs and the bar of outcomes")
        #expect(!page.contains("&lt;") && !page.contains("&quot;"), "none of our own words is taken for outside text")
    }

    /// What the page is made of, but for the script's file.
    @Test func thePageLoadsNothingFromElsewhereAndHasNoInlineScript() {
        for page in [
            StatusPage(PageWorld.facts("im")).markup.html,
            TracePage(form: TraceForm(apps: ["im"]), answer: nil).markup.html,
        ] {
            #expect(!page.contains("http:") && !page.contains("https:") && !page.contains("//"))
            // Below a proxy's path too.
            #expect(!page.contains("=\"/"))
            #expect(!page.contains("<style") && !page.contains("style=\"") && !page.contains("onclick"))
            #expect(
                page.components(separatedBy: "<script").count == 2
                    && page.contains("<script src=\"page/script.js\" defer></script>"))
        }
    }

    @Test func hostileNamesAreTextInEveryPlace() {
        let page = StatusPage(PageWorld.facts(Self.hostile)).markup.html
        #expect(page.components(separatedBy: "<script").count == 2, "only our own")
        #expect(!page.contains("alert(\"") && !page.unicodeScalars.contains("\u{202E}"))
        // Every place that has the name otherwise has it here, escaped.
        let plain = StatusPage(PageWorld.facts("NAME")).markup.html.components(separatedBy: "NAME").count
        let escaped = page.components(separatedBy: "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;'&amp;").count
        #expect(plain == escaped && plain > 20, "\(plain) \(escaped)")
    }

    @Test func thePageIsBoundedHoweverMuchThereIs() {
        var facts = PageFacts()
        let long = String(repeating: "x", count: 5_000)
        facts.snapshot = PageWorld.snapshot(long, shards: 4, partitions: 60, nodes: 100, apps: 300)
        let page = StatusPage(facts).markup.html
        // 240 partitions are assigned, of which each shard names the slowest.
        #expect(page.contains("and 200 more") && page.contains("and 60 more") && page.contains("and 260 more"))
        #expect(page.utf8.count < 200_000, "\(page.utf8.count)")
        #expect(!page.contains(String(repeating: "x", count: Markup.textMax + 1)))
    }

    @Test func `each cause of parking is one of waiting`() {
        for cause in ParkCause.allCases { #expect(WaitingPushes.Cause(cause).rawValue == cause.rawValue) }
    }

    @Test func `what is never used takes no room, and what is well can be folded`() {
        var facts = PageWorld.facts("im")
        #expect(StatusPage(facts).markup.html.contains("By long connection"))
        var ring = FlowRing()
        for step in 0...UInt64(3) { ring.take([Double(step), 0, 0, 0], atNanos: step * FlowRing.stepNanos) }
        facts.flow = ring
        if var unused = facts.view.clients.first {
            (unused.environment, unused.connections, unused.breaker) = ("unused", 0, 0)
            (unused.isReplacementRefused, unused.daysLeft) = (false, nil)
            facts.view.clients.append(unused)
        }
        let page = StatusPage(facts).markup.html
        #expect(!page.contains("By long connection") && !page.contains("unused") && page.contains("Pushes accepted"))
        #expect(page.contains("each graph: 0 to 1 a second"))
        let heads = page.components(separatedBy: "<details data-well open>").count - 1
        #expect(page.components(separatedBy: "<details open>").count - 1 + heads == 13)
        #expect(heads > 2 && heads < 13, "its Redis is down, its certificate ends, its graphs are well")
    }

    @Test func `the page shows the latency of the last minutes, and none of the start`() {
        let (watch, registry, _) = PageWorld.watch("im")
        let cell = registry.histogram(
            "carillon_event_end_to_end_seconds", help: "", labels: [("lane", "direct")], bounds: [0.1, 1], scale: 1e-3)
        registry.gauge("process_start_time_seconds", help: "").set(1)
        cell.observe(900)
        watch.tick(ProcessSnapshot(), nowNanos: 1, wallMs: 0)
        for _ in 0..<9 { cell.observe(50) }
        watch.tick(ProcessSnapshot(), nowNanos: 20_000_000_000, wallMs: 0)
        let facts = watch.facts(ProcessSnapshot(), nowNanos: 20_000_000_001, wallMs: 0)
        #expect(facts.lanes.map(\.lane) == ["direct"] && facts.endToEnd?.p99 ?? 1 <= 0.1)
    }

    @Test func aRedisThatIsDownLimitsAlthoughNoBoundIsReached() {
        var facts = PageFacts()
        facts.snapshot = PageWorld.snapshot("im")
        facts.view.intervalSeconds = 2
        let page = StatusPage(facts).markup.html
        #expect(page.contains("it is down: see Health"))
        #expect(!page.contains("<p class=\"quiet\">nothing</p>"))
    }

    @Test func unknownValuesAreNotShownAsZero() {
        var facts = PageWorld.facts("im")
        facts.view.assigned = 0
        let page = StatusPage(facts).markup.html
        #expect(page.contains("not known: no partition is assigned") && !page.contains("im: 1234 records"))
    }

    @Test func deadLettersAndLostLogLinesAreShown() {
        var facts = PageWorld.facts("im")
        #expect(facts.recent.contains { $0.verdict == "dead letter" && $0.reason == "im" && $0.rate == 5 })
        facts.view.lostLogLines = 28
        let page = StatusPage(facts).markup.html
        #expect(page.contains("carillon dlq list") && page.contains("log lines lost"))
    }

    @Test func eachNodeOfAClusterHasItsRatesAndOneServerHasNone() throws {
        var facts = PageWorld.facts("im")
        #expect(!StatusPage(facts).markup.html.contains("redirected or deferred"))
        var shard = try #require(facts.snapshot.shards.first)
        shard.redisPlaces = [RedisPlace(place: "redis://a:1/0", node: "a:1", isReady: true)]
        facts.snapshot = ProcessSnapshot(shards: [shard])
        let status = StatusFacts(try JSONTree(parsing: facts.snapshot.json))
        func look(_ seconds: UInt64, moved: Int) -> WorkerLook {
            let text = """
                process_start_time_seconds 1
                carillon_redis_redirects_total{code="moved",node="a:1"} \(moved)
                """
            return WorkerLook(
                address: "", atNanos: seconds * 1_000_000_000, answer: .facts(MetricsPage(Array(text.utf8)), status))
        }
        facts.view = FleetView([look(2, moved: 741)], after: [look(1, moved: 5)], wallSeconds: 0)
        let page = StatusPage(facts).markup.html
        #expect(page.contains("redirected or deferred/s") && page.contains(">736<"))
    }

    @Test func aStartingWorkerHasAPageToo() {
        let page = StatusPage(PageFacts()).markup.html
        #expect(page.contains("starting") && page.contains("measuring") && page.contains("no partition is assigned"))
    }

    @Test func eachTableNamesItsColumnsAndRows() {
        let page = StatusPage(PageWorld.facts("im")).markup.html
        let tables = page.components(separatedBy: "<table").dropFirst()
        #expect(tables.count >= 6)
        for table in tables {
            #expect(table.contains("<caption>") && table.contains("scope=\"col\"") && table.contains("scope=\"row\""))
        }
    }
}

/// Health is one list of problems for the page, `/readyz` and `carillon top`.
@Suite struct StatusPageHealthTests {
    private static func facts(_ notes: [HealthNote] = [], isReloadRefused: Bool = false) -> PageFacts {
        var facts = PageFacts()
        let shard = ReadinessTests.shard([ReadinessTests.client("im")])
        facts.snapshot = ProcessSnapshot(shards: [shard], isReloadRefused: isReloadRefused, notes: notes)
        return facts
    }

    @Test func allIsWellIsOneLineWithoutACard() {
        let page = StatusPage(Self.facts()).markup.html
        #expect(page.contains("All is well.") && page.contains("<title>ok – Carillon</title>"))
        #expect(!page.contains("class=\"card"))
    }

    @Test func eachProblemIsACardWithItsCauseAndItsRunbook() {
        let facts = Self.facts(HealthWorld.notes(rejected: 900), isReloadRefused: true)
        let page = StatusPage(facts).markup.html
        #expect(page.components(separatedBy: "class=\"card ").count == 3)
        #expect(page.contains("APNs accepted only 10 % of 1000 pushes") && page.contains("most by Unregistered"))
        #expect(page.contains("runbooks#carillonmassinvalidation") && page.contains("runbooks#carillonreloadrefused"))
        #expect(page.contains("<title>degraded – Carillon</title>"))
        let lines = facts.snapshot.lines.joined()
        #expect(lines.contains("app im production: degraded: APNs accepted only 10 %") && facts.snapshot.isReady)
    }

    @Test func `a card says since when its problem is there, and whether it goes on`() {
        var notes = HealthWorld.notes(rejected: 900)
        func page(_ nowMs: Int64, _ times: inout ProblemTimes) -> String {
            var facts = Self.facts(notes)
            facts.snapshot.date(by: &times, nowMs: nowMs)
            return StatusPage(facts).markup.html
        }
        var times = ProblemTimes()
        // 22:13:20 UTC.
        #expect(page(1_700_000_000_000, &times).contains("degraded <span class=\"quiet\">now, since 22:13:20</span>"))
        notes[0].endedMs = 1_700_000_060_000
        let later = page(1_700_000_100_000, &times)
        #expect(later.contains("degraded <span class=\"quiet\">since 22:13:20, ended 40 s ago</span>"))
        #expect(later.contains("class=\"card plain\"") && !later.contains("class=\"card warning\""))
        let words = "APNs accepted only 10 % of 1000 pushes"
        #expect(later.components(separatedBy: words).count == 2, "the reason stands once")
    }

    @Test func `a sentence says what waits, why, until when and since when, as the status does`() throws {
        var facts = Self.facts()
        #expect(StatusPage(facts).markup.html.contains("none waits"))
        var shard = ReadinessTests.shard([ReadinessTests.client("im")])
        shard.waiting.add(.unavailable, 60)
        shard.waiting.note(kafkaMs: 1_700_000_000_000)
        var other = shard
        other.waiting.add(.retryAfter, 6, untilMs: 1_700_000_042_000)
        facts.snapshot = ProcessSnapshot(shards: [shard, other])
        facts.atMs = 1_700_000_040_000
        let page = StatusPage(facts).markup.html
        #expect(
            page.contains(
                "<b>126</b> pushes wait: <b>120</b> until APNs is available, <b>6</b> because APNs asked for it "
                    + "until 22:14:02; the oldest event is 40 s old."), "\(page)")
        #expect(!page.contains("none waits") && page.contains("<section id=\"flow\""))
        let status = try JSONTree(parsing: facts.snapshot.json)["waiting"]
        #expect(status?["pushes"]?.int == 126 && status?["oldest_ms"]?.int == 1_700_000_000_000)
        let why = status?["why"]?.array ?? []
        #expect(why.map { $0["reason"]?.string } == ["unavailable", "retry_after"])
        #expect(why.map { $0["pushes"]?.int } == [120, 6] && why.last?["until_ms"]?.int == 1_700_000_042_000)
    }

    @Test func everyAlertThatAProblemNamesHasARunbook() throws {
        var alerts = Set(HealthRule.allCases.map(\.alert))
        let snapshot = PageWorld.snapshot("im").withTurn(secondsAgo: 30)
        alerts.formUnion(snapshot.parts.flatMap(\.alerts))
        let runbooks = RunbookPage.markup.html
        for alert in alerts { #expect(runbooks.contains("<h3 id=\"\(alert.lowercased())\">"), "\(alert)") }
    }

    @Test func `each link of the runbooks leads to a heading, and no mark of Markdown remains`() {
        let page = RunbookPage.markup.html
        func values(behind name: String) -> [String] {
            page.components(separatedBy: name).dropFirst().map { String($0.prefix { $0 != "\"" }) }
        }
        let ids = values(behind: " id=\"")
        let links = Set(values(behind: " href=\"#"))
        #expect(Set(ids).count == ids.count && links.count > 20)
        #expect(links.subtracting(ids) == [])
        for mark in ["**", "`", "](", "| "] { #expect(!page.contains(mark), "\(mark)") }
    }

    @Test func `the forms of Markdown that runbooks have become HTML`() {
        let text = """
            ## The `x` of y

            One line
            and **bold `code`** of CarillonDown.

            - first, [here](#there)
            - second, [a.md](b/a.md#c)

            | `a` | b |
            |---|---|
            | 1 < 2 | [CarillonUp](#carillonup) |
            """
        let lines = RunbookMarkdown.html(text).html.split(separator: "\n")
        #expect(
            lines == [
                "<h2 id=\"the-x-of-y\">The <code>x</code> of y</h2>",
                "<p>One line and <b>bold <code>code</code></b> of <a href=\"#carillondown\">CarillonDown</a>.</p>",
                "<ul>", "<li>first, <a href=\"#there\">here</a></li>", "<li>second, <code>docs/a.md</code></li>",
                "</ul>",
                "<table role=\"table\"><thead role=\"rowgroup\"><tr role=\"row\"><th role=\"columnheader\" "
                    + "scope=\"col\"><code>a</code></th><th role=\"columnheader\" scope=\"col\">b</th></tr></thead>",
                "<tbody role=\"rowgroup\">",
                "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">1 &lt; 2</th><td role=\"cell\" data-label=\"b\">"
                    + "<a href=\"#carillonup\">CarillonUp</a></td></tr>",
                "</tbody></table>",
            ])
    }

    @Test func aShardThatDoesNotTurnIsDownOnThePageToo() {
        let snapshot = Self.facts().snapshot.withTurn(secondsAgo: 30)
        #expect(
            !snapshot.isReady && snapshot.health == .down
                && snapshot.headline == "loop: a shard has not turned for 30 s")
        #expect(Self.facts().snapshot.withTurn(secondsAgo: 1).health == .ok)
    }
}

@Suite struct FlowRingTests {
    @Test func stepsAreRatesAndTheOldestGoes() {
        var ring = FlowRing()
        #expect(ring.isDue(0) && ring.rates(.read).isEmpty)
        for step in 0...UInt64(FlowRing.stepsMax + 20) {
            ring.take([Double(step * 10), 0, Double(step), 0], atNanos: step * FlowRing.stepNanos)
        }
        #expect(ring.rates(.read) == Array(repeating: 5, count: FlowRing.stepsMax))
        #expect(ring.rates(.pushed).allSatisfy { $0 == 0.5 })
    }

    @Test func aCounterThatFellAndAClockThatStoodAreNoRates() {
        var ring = FlowRing()
        ring.take([10, 0, 0, 0], atNanos: 2)
        ring.take([4, 0, 0, 0], atNanos: 2)
        #expect(ring.steps.isEmpty)
        ring.take([1, 0, 0, 0], atNanos: 2_000_000_002)
        #expect(ring.rates(.read) == [0])
        #expect(!ring.isDue(2_000_000_003) && ring.isDue(4_000_000_002))
    }

    @Test(arguments: [[], [1], [0, 0], [1, .infinity, .nan, -3], Array(repeating: 1e300, count: 90)] as [[Double]])
    func anyRatesMakeAGraph(rates: [Double]) {
        let graph = FlowGraph.markup(rates, to: FlowGraph.top(over: rates.max() ?? 0), what: "x").html
        #expect(graph.contains(rates.count > 1 ? "<svg" : "measuring"))
        #expect(!graph.contains("nan") && !graph.contains("inf\""))
    }

    @Test func `graphs share a scale that ends at a round number`() {
        #expect([0, 1, 1.2, 19, 20, 21, 480].map { FlowGraph.top(over: $0) } == [1, 1, 1.5, 20, 20, 30, 600])
        let half = FlowGraph.markup([10, 10], to: 20, what: "x").html
        #expect(half.contains(",20.0 180.0,20.0\"/></svg>"), "half of the height: \(half)")
    }
}

@Suite struct OperatorWatchTests {
    @Test func ratesAreOfTheLastSecondsAndReasonsOfTheLastMinutes() {
        let facts = PageWorld.facts("im")
        // Twenty steps of 10, two seconds apart.
        #expect(facts.view.consumedRate == 5 && facts.view.deliveryRate == 5)
        #expect(facts.flow.rates(.pushed).count == 19 && facts.flow.rates(.pushed).allSatisfy { $0 == 5 })
        #expect(facts.recent.first?.reason == "im" && facts.recent.first?.rate == 5)
        #expect(facts.recentSeconds.map { $0 >= 30 } ?? false)
    }

    /// Health and the page look back over one window.
    @Test func aNoteSaysWhenItsConditionEnded() throws {
        let registry = MetricsRegistry()
        let gap = registry.counter("carillon_kafka_gap_records_total", help: "")
        registry.gauge("process_start_time_seconds", help: "").set(1)
        let watch = OperatorWatch(registry)
        func look(_ seconds: UInt64) -> HealthNote? {
            watch.tick(ProcessSnapshot(), nowNanos: seconds * 1_000_000_000, wallMs: Int64(seconds) * 1000)
            return watch.notes.first
        }
        _ = look(10)
        gap.add(3)
        #expect(look(20).map { $0.endedMs == nil } == true)
        #expect(look(30)?.text.hasSuffix("in the last 20 s") == true)
        for seconds in stride(from: UInt64(40), through: 60, by: 10) { _ = look(seconds) }
        let ended = try #require(look(70)?.endedMs)
        #expect((20_000...40_000).contains(ended))
        for seconds in stride(from: UInt64(80), through: 190, by: 10) {
            #expect(look(seconds)?.endedMs == ended, "at \(seconds)")
        }
        #expect(look(190)?.text.hasSuffix("in the last 3 min") == true)
        let facts = watch.facts(ProcessSnapshot(), nowNanos: 199_000_000_000, wallMs: 199_000)
        #expect(facts.recentSeconds == 180)
        // The note leaves the window: the look at 210 s is the last one that begins before it.
        _ = look(210)
        #expect(look(220) == nil)
        gap.add(1)
        #expect(look(230).map { $0.endedMs == nil } == true)
    }

    @Test func manyWhoLookAtOnceCostOneLook() {
        let (watch, _, counters) = PageWorld.watch("im")
        let snapshot = ProcessSnapshot()
        watch.tick(snapshot, nowNanos: 1, wallMs: 0)
        counters[0].add(20)
        let first = watch.facts(snapshot, nowNanos: 2_000_000_001, wallMs: 0)
        counters[0].add(20)
        let second = watch.facts(snapshot, nowNanos: 2_500_000_001, wallMs: 0)
        #expect(first.view.consumedRate == 10 && second.view.consumedRate == 10)
        #expect(watch.facts(snapshot, nowNanos: 4_000_000_001, wallMs: 0).view.consumedRate == 10)
    }
}

@Suite struct MarkupTests {
    @Test func aStringIsEscapedAndCutAndMarkupIsNot() {
        let text = "<b>\"&"
        let part: Markup = "<i title=\"\(text)\">\(7)</i>"
        #expect("<p>\(part)</p>" as Markup == "<p><i title=\"&lt;b&gt;&quot;&amp;\">7</i></p>")
        let long: Markup = "\(String(repeating: "é", count: 1_000))"
        #expect(long.html.count == Markup.textMax + 1 && long.html.hasSuffix("…"))
    }
}
