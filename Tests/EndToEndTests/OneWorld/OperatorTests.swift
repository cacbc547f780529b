import JSON
import LocalServers
import Processes
import Support
import Testing
import Worker

/// What an operator can ask, and what nobody may read there.
extension OneWorld {
    @Suite struct Operator {
        @Test func thePagesAnswer() async throws {
            let stage = try Stage.here
            #expect(try await stage.page("/livez").status == 200)
            let ready = try await stage.page("/readyz")
            #expect(ready.status == 200)
            #expect(ready.text == "kafka: ok\nredis: ok\napp im production: ok\napp im sandbox: ok\n")
            #expect(try await stage.page("/nothing").status == 404)
            #expect(try await stage.page("/").text.contains("<h1>Carillon</h1>"))
            let status = try await stage.page("/statusz")
            #expect(status.headers["content-type"]?.hasPrefix("application/json") ?? false)
            let tree = try JSONTree(parsing: status.body)
            #expect(tree["ready"]?.bool == true && tree["shards"]?.array?.count == 2)
            let partitions = tree["shards"]?.array?.compactMap { $0["assigned_partitions"]?.int }.reduce(0, +)
            #expect(partitions == 8, "four of each input topic")
            let nodes = tree["shards"]?[0]?["redis_nodes"]?.array ?? []
            #expect(!nodes.isEmpty && nodes.allSatisfy { $0["ready"]?.bool == true && $0["place"]?.string != nil })
        }

        @Test func everyMetricIsWellFormedAndOurs() async throws {
            let stage = try Stage.here
            try await stage.play(state: [.bind("o1")], events: [.message("o1-1", to: ["o1"])])
            let answer = try await stage.page("/metrics")
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
        @Test func openReportsAreCountedOncePerDeviceAndWithoutTheirMessageAsUnchecked() async throws {
            let stage = try Stage.here
            let seen = try await stage.play(state: [.bind("o3")], events: [.message("o3-1", to: ["o3"])])
            func count(_ name: String) async throws -> Int { try await stage.metric(name, #"app="im""#) }
            let opened = try await count("carillon_open_reports_total")
            let unchecked = try await count("carillon_open_reports_unchecked_total")
            let pid = try #require(seen.push(of: "o3-1")?.json["pid"]?.string)
            func report(_ device: String, _ pid: String, _ message: String? = "o3-1") -> Line {
                let id = message.map { #","msg_id":"\#($0)""# } ?? ""
                return .state(
                    "open_report", "o3", #""device":"\#(device)","pid":"\#(pid)","opened_ms":\#(nowMs)\#(id)"#)
            }
            let invented = "00000000-0000-8000-8000-000000000000"
            try await stage.play(state: [
                report("phone", pid), report("phone", pid), report("phone", invented), report("phone", invented),
                report("pad", pid, nil), report("pad", pid, nil), report("phone", "other", "o3-2"),
            ])
            #expect(try await count("carillon_open_reports_total") == opened + 4)
            #expect(try await count("carillon_open_reports_unchecked_total") == unchecked + 3)
            // The pages answer from a snapshot; asking for the status renews it.
            _ = try await stage.worker.status()
            let app = try JSONTree(parsing: try await stage.page("/statusz").body)["apps"]?.array?.first
            #expect(app?["opened"]?.int == Int64(opened) + 4 && app?["open_rate"] == nil)
            #expect(!(try await stage.page("/metrics").text.contains("carillon_open_rate")))
            #expect(!(try await stage.page("/").text.contains("open rate")))
        }

        @Test func thePagesFilesAreTheServersOwn() async throws {
            let stage = try Stage.here
            let page = try await stage.page("/")
            #expect(page.headers["content-security-policy"]?.contains("script-src 'self'") ?? false)
            for (path, type) in [
                ("/page/style.css", "text/css; charset=utf-8"), ("/page/script.js", "text/javascript; charset=utf-8"),
                ("/page/icon.svg", "image/svg+xml"),
            ] {
                let file = try await stage.page(path)
                #expect(
                    page.text.contains("\"\(path.dropFirst())\"") && file.status == 200
                        && file.headers["content-type"] == type)
            }
        }

        @Test func theBoxShowsTheTraceAndThePresentSteps() async throws {
            let stage = try Stage.here
            let given = token("o4", "phone")
            try await stage.play(state: [.bind("o4")], events: [.message("o4-1", to: ["o4"])])
            let found = try await stage.page("/trace?app=im&user=o4&msg=o4-1")
            #expect(found.status == 200, "\(found.text)")
            for words in ["message o4-1", "accepted", "status", "A plain message", "DND", "value=\"o4\""] {
                #expect(found.text.contains(words), "\(words)")
            }
            #expect(!found.text.contains(given) && !found.text.contains("<script>"))
            let unknown = try await stage.page("/trace?app=im&user=o4&msg=o4-none")
            #expect(unknown.text.contains("no worker has decided it for this user"))
            let nobody = try await stage.page("/trace?app=im&user=%3Cb%3E")
            #expect(nobody.status == 200 && nobody.text.contains("no_token") && nobody.text.contains("&lt;b&gt;"))
            #expect(try await stage.page("/trace?app=none&user=o4").status == 400)
            #expect(try await stage.page("/trace?app=im").status == 400)
            #expect(try await stage.page("/trace").status == 200)
        }

        @Test func noTokenNoTextAndNoSecretIsEverShown() async throws {
            let stage = try Stage.here
            let dead = token("o2", "phone", TokenPrefix.gone)
            let canary = "canary-\(nowMs)"
            try await stage.play(
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
            for path in ["/metrics", "/statusz", "/", "/trace?app=im&user=o2&msg=o2-1"] {
                places.append((path, try await stage.page(path).text))
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
}

extension Stage {
    /// The lines of the provider's key that hold it.
    nonisolated func secretLines() throws -> [String] {
        let path = try #require(
            world.configurationText.split(separator: "\n").first { $0.contains("key_file:") }?
                .split(separator: ":").last)
        let bytes = try readFile(String(path).trimmingSpaces)
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        let inside = lines.filter { !$0.hasPrefix("-----") }
        try #require(!inside.isEmpty)
        return inside
    }
}

extension String {
    fileprivate var trimmingSpaces: String { String(drop { $0 == " " }) }
}
