// SPDX-License-Identifier: Apache-2.0
import JSON
import Telemetry
import Testing
import VirtualStage
import Worker

/// What an operator can ask, and what nobody may read there.
@Suite(.onStage(scenario: TokenPrefix.scenario)) struct OperatorTests {
    @Test func thePagesAnswer() throws {
        let stage = try Stage.here
        #expect(try stage.page("/livez").status == 200)
        let ready = try stage.page("/readyz")
        #expect(ready.status == 200)
        #expect(ready.text == "kafka: ok\nredis: ok\napp im production: ok\n")
        #expect(try stage.page("/nothing").status == 404)
        #expect(try stage.page("/").text.contains("<h1>Carillon</h1>"))
        let status = try stage.page("/statusz")
        #expect(status.headers["content-type"]?.hasPrefix("application/json") ?? false)
        let tree = try JSONTree(parsing: status.body)
        #expect(tree["ready"]?.bool == true && tree["shards"]?.array?.count == 2)
        let partitions = tree["shards"]?.array?.compactMap { $0["assigned_partitions"]?.int }.reduce(0, +)
        #expect(partitions == 8, "four of each input topic")
        let nodes = tree["shards"]?[0]?["redis_nodes"]?.array ?? []
        #expect(!nodes.isEmpty && nodes.allSatisfy { $0["ready"]?.bool == true && $0["place"]?.string != nil })
    }

    /// Connects come faster than any place becomes free: a probe among them has its request answered all the same.
    @Test func aFloodOfConnectsEndsNoProbe() throws {
        let stage = try Stage.here
        let endedCount = try stage.withConnectFlood(perSecond: 20_000) {
            for _ in 0..<20 {
                let status = try stage.page("/livez").status
                #expect(status == 200)
                stage.wait(.milliseconds(7))
            }
        }
        #expect(endedCount > 1000)
    }

    @Test func recordsWithUnknownFieldsAreCounted() throws {
        let stage = try Stage.here
        try stage.play(
            state: [.bind("uf1")],
            events: [.message("uf1-1", to: ["uf1"], push: #""body":"x""#), .message("uf1-2", to: ["uf1"])])
        #expect(try stage.metric("carillon_unknown_fields_total", #"app="im""#) == 1)
    }

    @Test func everyMetricIsWellFormedAndOurs() throws {
        let stage = try Stage.here
        try stage.play(state: [.bind("o1")], events: [.message("o1-1", to: ["o1"])])
        let answer = try stage.page("/metrics")
        #expect(answer.headers["content-type"]?.contains("version=0.0.4") ?? false)
        var samples: [String: Double] = [:]
        var typed: Set<Substring> = []
        for line in answer.text.split(separator: "\n") {
            if line.hasPrefix("# TYPE ") { typed.insert(line.dropFirst(7).prefix { $0 != " " }) }
            if line.hasPrefix("#") { continue }
            let cut = try #require(line.lastIndex(of: " "))
            let value = try #require(Double(line[line.index(after: cut)...]), "\(line)")
            #expect(samples.updateValue(value, forKey: String(line[..<cut])) == nil, "\(line) is repeated")
            let name = line.prefix { $0 != "{" && $0 != " " }
            #expect(name.hasPrefix("carillon_") || name.hasPrefix("process_"), "\(name)")
        }
        #expect(typed.contains("carillon_decisions_total"))
        for part in [
            #"part="process""#, #"part="kafka""#, #"part="redis""#, #"app="im",env="production",part="apns""#,
        ] {
            #expect(samples["carillon_ready{\(part)}"] == 1, "\(part)")
        }
        #expect(samples.keys.contains { $0.hasPrefix("carillon_build_info{") })
        #expect(samples["carillon_log_lines_dropped_total"] == 0)
        let within = #"carillon_event_end_to_end_seconds_bucket{lane="direct",le="2""#
        #expect(samples.keys.contains { $0.hasPrefix(within) })
        let accepted = samples.filter {
            $0.key.hasPrefix("carillon_decisions_total{") && $0.key.contains(#"verdict="accepted""#)
        }
        #expect(accepted.values.reduce(0, +) >= 1)
    }

    /// Without statistics of all workers there is no rate that is true of one.
    @Test func openReportsAreCountedOncePerDeviceAndWithoutTheirMessageAsUnchecked() throws {
        let stage = try Stage.here
        let seen = try stage.play(state: [.bind("o3")], events: [.message("o3-1", to: ["o3"])])
        func count(_ name: String) throws -> Int { try stage.metric(name, #"app="im""#) }
        let opened = try count("carillon_open_reports_total")
        let unchecked = try count("carillon_open_reports_unchecked_total")
        let pid = try #require(seen.push(of: "o3-1")?.json["pid"]?.string)
        func report(_ device: String, _ pid: String, _ message: String? = "o3-1") -> Line {
            let id = message.map { #","msg_id":"\#($0)""# } ?? ""
            return .state(
                "open_report", "o3", #""device":"\#(device)","pid":"\#(pid)","opened_ms":\#(nowMs)\#(id)"#)
        }
        let invented = "00000000-0000-8000-8000-000000000000"
        try stage.play(state: [
            report("phone", pid), report("phone", pid), report("phone", invented), report("phone", invented),
            report("pad", pid, nil), report("pad", pid, nil), report("phone", "other", "o3-2"),
        ])
        #expect(try count("carillon_open_reports_total") == opened + 4)
        #expect(try count("carillon_open_reports_unchecked_total") == unchecked + 3)
        // The pages answer from a snapshot; asking for the status renews it.
        _ = try stage.worker.status()
        let app = try JSONTree(parsing: try stage.page("/statusz").body)["apps"]?.array?.first
        #expect(app?["opened"]?.int == Int64(opened) + 4 && app?["open_rate"] == nil)
        #expect(!(try stage.page("/metrics").text.contains("carillon_open_rate")))
        #expect(!(try stage.page("/").text.contains("open rate")))
    }

    @Test func thePagesFilesAreTheServersOwn() throws {
        let stage = try Stage.here
        let page = try stage.page("/")
        #expect(page.headers["content-security-policy"]?.contains("script-src 'self'") ?? false)
        for (path, type) in [
            ("/page/style.css", "text/css; charset=utf-8"), ("/page/script.js", "text/javascript; charset=utf-8"),
            ("/page/icon.svg", "image/svg+xml"),
        ] {
            let file = try stage.page(path)
            #expect(
                page.text.contains("\"\(path.dropFirst())\"") && file.status == 200
                    && file.headers["content-type"] == type)
        }
    }

    @Test func noTokenNoTextAndNoSecretIsEverShown() throws {
        let stage = try Stage.here
        let dead = token("o2", "phone", TokenPrefix.gone)
        let canary = "canary-\(nowMs)"
        try stage.play(
            state: [.bind("o2", as: dead), .bind("o2", "pad")],
            events: [
                .message(
                    "o2-1", to: ["o2"],
                    push: #""title":"\#(canary)-title","content":"\#(canary)-content","payload":{"k":"\#(canary)"}"#
                ),
                Line(key: Array("o2".utf8), value: Array(#"{"v":1,"kind":"\#(canary)","app":"\#(canary)"}"#.utf8)),
                Line(key: Array("o2".utf8), value: Array("\(canary) is not JSON".utf8)),
            ])
        let key = try stage.secretLines()
        var places = [("log", try stage.logText())]
        for path in ["/metrics", "/statusz", "/"] {
            places.append((path, try stage.page(path).text))
        }
        #expect(places[0].1.contains("dead-letter topic"), "the log is the worker's")
        for (place, text) in places {
            #expect(!text.contains(canary), "the message's text in \(place)")
            #expect(!text.contains(dead) && !text.contains(token("o2", "pad")), "a token in \(place)")
            for line in key { #expect(!text.contains(line), "the key in \(place)") }
            #expect(!text.contains("bearer ey"), "a provider token in \(place)")
        }
    }
}

extension Stage {
    /// The lines of the provider's key that hold it.
    fileprivate func secretLines() throws -> [String] {
        guard case .bytes(let bytes) = SmallFile.read(keyFile, limit: 65_536) else { throw SetupFault("no key") }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        let inside = lines.filter { !$0.hasPrefix("-----") }
        try #require(!inside.isEmpty)
        return inside
    }
}
