import JSON
import LocalServers
import Processes
import StageWords
import Support
import Testing
import Worker

/// Keys that no waiting mends: the records that need them end, each once, and Redis is asked in vain only a few times.
@Suite struct BrokenKeyTests {
    @Test func keysOfTheWrongTypeEndTheirRecordsWithFewErrors() async throws {
        try await Stage.with { stage in
            let users = (1...4).map { "b\($0)" }
            try await stage.play(state: users.map { .bind($0) })
            try await stage.redis([
                "RPUSH c:d2:{im:b1}mb1-1 x", "DEL c:s:{im:b2}", "SET c:s:{im:b2} x", "HSET c:s:{im:b3} b garbage",
                "RPUSH c:k:{im:b4} x", "CONFIG RESETSTAT",
            ])
            try await stage.writeEvents(users.map { .message("\($0)-1", to: [$0]) })
            // The number of errors shows that nothing is tried for long; the time depends on the machine.
            try await stage.settle()
            var seen = try await stage.look()
            // A broken mark is as none, unless the push waits and is claimed again by the script: then it has no number.
            let first = seen.outcomes(of: "b1-1")
            #expect(first == ["b1/phone accepted ok 1"] || first == ["b1/phone accepted ok"])
            #expect(seen.outcomes(of: "b2-1") == ["b2/phone accepted ok"], "a state that cannot be read has no number")
            #expect(seen.outcomes(of: "b3-1") == ["b3/phone accepted ok 1"])
            #expect(seen.outcomes(of: "b4-1") == ["b4/phone accepted ok 1"])
            #expect(try await stage.errors() <= 30, "errors of redis-server")
            // A repeat finds the mark.
            seen = try await stage.play(events: users.map { .message("\($0)-1", to: [$0], event: "\($0)-again") })
            #expect(seen.doubled.isEmpty && users.allSatisfy { seen.accepted(token($0, "phone")).count == 1 })
        }
    }

    /// A claim of many that meets one broken key is no sign of an earlier try of the others.
    @Test func aBrokenKeyAmongManyResumesNobody() async throws {
        try await Stage.with { stage in
            let users = (0..<20).map { "w\($0)" }
            try await stage.play(state: users.map { .bind($0) })
            try await stage.redis(["SET c:l:{im:w9} broken", "CONFIG RESETSTAT"])
            let seen = try await stage.play(events: [.message("w-1", to: users, conv: "w", type: "group")])
            #expect(
                seen.outcomes(of: "w-1")
                    == users.map { "\($0)/phone accepted ok\($0 == "w9" ? "" : " 1")" }.sorted())
        }
    }

    /// One user's presence of 17 MB, and a hundred messages to that user: other users' pushes go meanwhile.
    @Test func manyMessagesToAUserWithAnOversizedKeyDelayNobodyElse() async throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        try await Stage.with(settings) { stage in
            let crowd = Crowd(name: "beside", count: 60)
            try await stage.play(state: crowd.binds + [.bind("huge")])
            try await stage.redis([
                "EVAL \"for i = 1, 100000 do redis.call('HSET', KEYS[1], 'd' .. i, string.rep('x', 160)) end\" 1 p:{im:huge}"
            ])
            let connects = try await stage.metric("carillon_redis_connects_total")
            let flood = (0..<100).map { Line.message("huge-\($0)", to: ["huge"], conv: "h-\($0)") }
            let seen = try await stage.play(events: flood + crowd.messages)
            #expect(crowd.accepted(seen.pushes).allSatisfy { $0 == 1 })
            #expect(seen.accepted(token("huge", "phone")).count == 100, "the presence counts as absent")
            #expect(try await stage.metric("carillon_redis_connects_total") == connects, "no link was cut")
        }
    }

    @Test func aKeyOverTheReplysLimitIsAsOneOfTheWrongTypeAndCutsNoLink() async throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        // A machine that stalls cuts none either.
        settings.redisLines = "  timeout_ms: 60000\n"
        try await Stage.with(settings) { stage in
            let users = (1...5).map { "l\($0)" }
            try await stage.play(state: users.map { .bind($0) })
            let fill = "\"redis.call('HSET', KEYS[1], ARGV[1], string.rep('x', 9000000))\" 1"
            try await stage.redis(["EVAL \(fill) p:{im:l1} phone", "EVAL \(fill) c:u:{im:l2} tapad"])
            for round in 1...3 {
                let seen = try await stage.play(events: users.map { .message("\($0)-\(round)", to: [$0]) })
                #expect(seen.outcomes(of: "l1-\(round)") == ["l1/phone accepted ok \(round)"], "nobody is live")
                #expect(seen.outcomes(of: "l2-\(round)") == ["l2 suppressed no_token"])
                for user in users.dropFirst(2) {
                    #expect(seen.outcomes(of: "\(user)-\(round)") == ["\(user)/phone accepted ok \(round)"])
                }
            }
            #expect(try await stage.metric("carillon_redis_connects_total") == 1)
            let errors = try await stage.metric("carillon_redis_errors_total", #"code="too_large""#)
            #expect(errors == 2, "asked once a minute")
        }
    }

    @Test func aUserWithoutTheRightToScriptsIsReportedAndRetriedSeldom() async throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        try await Stage.with(settings) { stage in
            let users = (0..<50).map { "n\($0)" }
            try await stage.play(state: users.map { .bind($0) })
            // Whose client has reported a total as of later is claimed by the script, and shows that.
            try await stage.redis(users.map { "HSET c:s:{im:\($0)} b \"9000000000000000 5 0 0\"" })
            try await stage.redis(["ACL SETUSER default -eval -evalsha", "CONFIG RESETSTAT"])
            try await stage.writeEvents(users.map { .message("\($0)-1", to: [$0]) })
            try await until("/readyz names it") {
                let page = try await stage.page("/readyz")
                return page.status == 503 && page.text.contains("no_permission")
            }
            let before = try await stage.errors()
            try await Task.sleep(for: .seconds(2))
            #expect(try await stage.errors() - before <= 100, "errors in two seconds")
            let lines = try stage.logText().split(separator: "\n").filter { $0.contains("no_permission") }
            #expect((1...4).contains(lines.count), "one line per cause and ten seconds: \(lines.count)")
            try await stage.redis(["ACL SETUSER default +eval +evalsha"])
            try await stage.settle()
            let seen = try await stage.look()
            for user in users { #expect(seen.outcomes(of: "\(user)-1") == ["\(user)/phone accepted ok 5"]) }
        }
    }

    @Test func slotsThatGoElsewhereMakeTheWorkerNotReadyAndDecideNothing() async throws {
        var settings = LocalCluster.Settings()
        settings.redisArguments = [
            "--cluster-enabled", "yes", "--cluster-port", String(try Ports.free()), "--cluster-require-full-coverage",
            "no",
        ]
        let stage = try await Stage(settings)
        do {
            try await stage.redis(["CLUSTER ADDSLOTSRANGE 0 16383"])
            try await until("the node serves its slots") {
                try await stage.redisText("CLUSTER INFO").contains("state:ok")
            }
            try await stage.startWorker()
            let users = (0..<40).map { "s\($0)" }
            try await stage.play(state: users.map { .bind($0) })
            try await stage.redis(["CLUSTER DELSLOTSRANGE 8192 16383"])
            try await stage.writeEvents(users.map { .message("\($0)-1", to: [$0]) })
            try await until("/readyz names it") {
                let page = try await stage.page("/readyz")
                return page.status == 503 && page.text.contains("cluster_down")
            }
            #expect(try stage.logText().contains("cluster_down"))
            #expect(try await stage.metric("carillon_redis_errors_total", #"code="cluster_down""#) > 0)
            try await stage.redis(["CLUSTER ADDSLOTSRANGE 8192 16383"])
            try await stage.settle()
            let seen = try await stage.look()
            for user in users { #expect(seen.outcomes(of: "\(user)-1") == ["\(user)/phone accepted ok 1"]) }
        } catch {
            await stage.close()
            throw error
        }
        await stage.close()
    }
}

extension Stage {
    /// Error replies of redis-server since the statistics were reset.
    fileprivate nonisolated func errors() async throws -> Int {
        let text = try await redisText("INFO stats")
        let figure = text.components(after: "total_error_replies:")
        return Int(figure.prefix { $0.isNumber }) ?? -1
    }
}

extension String {
    /// What follows the first occurrence of `mark`; empty where there is none.
    fileprivate func components(after mark: String) -> Substring {
        guard let range = self.firstRange(of: mark) else { return "" }
        return self[range.upperBound...]
    }
}
