// SPDX-License-Identifier: Apache-2.0
import JSON
import Testing
import VirtualStage
import Worker

/// Keys that no waiting mends: the records that need them end, each once, and Redis is asked in vain only a few times.
@Suite struct BrokenKeyTests {
    @Test func keysOfTheWrongTypeEndTheirRecordsWithFewErrors() throws {
        try Stage.with { stage in
            let users = (1...4).map { "b\($0)" }
            try stage.play(state: users.map { .bind($0) })
            try stage.redis([
                "RPUSH c:d2:{im:b1}mb1-1 x", "DEL c:s:{im:b2}", "SET c:s:{im:b2} x", "HSET c:s:{im:b3} b garbage",
                "RPUSH c:k:{im:b4} x", "CONFIG RESETSTAT",
            ])
            try stage.writeEvents(users.map { .message("\($0)-1", to: [$0]) })
            // The number of errors shows that nothing is tried for long; the time depends on the machine.
            try stage.settle()
            var seen = try stage.look()
            // A broken mark is as none, unless the push waits and is claimed again by the script: then it has no number.
            let first = seen.outcomes(of: "b1-1")
            #expect(first == ["b1/phone accepted ok 1"] || first == ["b1/phone accepted ok"])
            #expect(seen.outcomes(of: "b2-1") == ["b2/phone accepted ok"], "a state that cannot be read has no number")
            #expect(seen.outcomes(of: "b3-1") == ["b3/phone accepted ok 1"])
            #expect(seen.outcomes(of: "b4-1") == ["b4/phone accepted ok 1"])
            #expect(stage.redis.errorReplies <= 30, "errors of redis-server")
            // A repeat finds the mark.
            seen = try stage.play(events: users.map { .message("\($0)-1", to: [$0], event: "\($0)-again") })
            #expect(seen.doubled.isEmpty && users.allSatisfy { seen.accepted(token($0, "phone")).count == 1 })
        }
    }

    /// A claim of many that meets one broken key is no sign of an earlier try of the others.
    @Test func aBrokenKeyAmongManyResumesNobody() throws {
        try Stage.with { stage in
            let users = (0..<20).map { "w\($0)" }
            try stage.play(state: users.map { .bind($0) })
            try stage.redis(["SET c:l:{im:w9} broken", "CONFIG RESETSTAT"])
            let seen = try stage.play(events: [.message("w-1", to: users, conv: "w", type: "group")])
            #expect(
                seen.outcomes(of: "w-1")
                    == users.map { "\($0)/phone accepted ok\($0 == "w9" ? "" : " 1")" }.sorted())
        }
    }

    /// One user's presence of 17 MB, and a hundred messages to that user: other users' pushes go meanwhile.
    @Test func manyMessagesToAUserWithAnOversizedKeyDelayNobodyElse() throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        try Stage.with(settings) { stage in
            let crowd = Crowd(name: "beside", count: 60)
            try stage.play(state: crowd.binds + [.bind("huge")])
            try stage.redis([
                "EVAL \"for i = 1, 100000 do redis.call('HSET', KEYS[1], 'd' .. i, string.rep('x', 160)) end\" 1 p:{im:huge}"
            ])
            let connects = try stage.metric("carillon_redis_connects_total")
            let flood = (0..<100).map { Line.message("huge-\($0)", to: ["huge"], conv: "h-\($0)") }
            let seen = try stage.play(events: flood + crowd.messages)
            #expect(crowd.accepted(seen.pushes).allSatisfy { $0 == 1 })
            #expect(seen.accepted(token("huge", "phone")).count == 100, "no device in it is live")
            #expect(try stage.metric("carillon_redis_errors_total", #"code="too_large""#) == 0, "it is read in part")
            #expect(try stage.metric("carillon_redis_connects_total") == connects, "no link was cut")
        }
    }

    @Test func aKeyOverTheReplysLimitIsAsOneOfTheWrongTypeAndCutsNoLink() throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        // A machine that stalls cuts none either.
        settings.redisLines = "  timeout_ms: 60000\n"
        try Stage.with(settings) { stage in
            let users = (1...5).map { "l\($0)" }
            try stage.play(state: users.map { .bind($0) })
            let fill = "\"redis.call('HSET', KEYS[1], ARGV[1], string.rep('x', 9000000))\" 1"
            try stage.redis(["EVAL \(fill) p:{im:l1} phone", "EVAL \(fill) c:u:{im:l2} tapad"])
            for round in 1...3 {
                let seen = try stage.play(events: users.map { .message("\($0)-\(round)", to: [$0]) })
                #expect(seen.outcomes(of: "l1-\(round)") == ["l1/phone accepted ok \(round)"], "nobody is live")
                #expect(seen.outcomes(of: "l2-\(round)") == ["l2 suppressed no_token"])
                for user in users.dropFirst(2) {
                    #expect(seen.outcomes(of: "\(user)-\(round)") == ["\(user)/phone accepted ok \(round)"])
                }
            }
            #expect(try stage.metric("carillon_redis_connects_total") == 1)
            let errors = try stage.metric("carillon_redis_errors_total", #"code="too_large""#)
            #expect(errors == 2, "asked once a minute")
        }
    }

    @Test func aUserWithoutTheRightToScriptsIsReportedAndRetriedSeldom() throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        try Stage.with(settings) { stage in
            let users = (0..<50).map { "n\($0)" }
            try stage.play(state: users.map { .bind($0) })
            // Whose client has reported a total as of later is claimed by the script, and shows that.
            try stage.redis(users.map { "HSET c:s:{im:\($0)} b \"9000000000000000 5 0 0\"" })
            try stage.redis(["ACL SETUSER default -eval -evalsha", "CONFIG RESETSTAT"])
            try stage.writeEvents(users.map { .message("\($0)-1", to: [$0]) })
            try until("/readyz names it") {
                let page = try stage.page("/readyz")
                return page.status == 503 && page.text.contains("no_permission")
            }
            let before = stage.redis.errorReplies
            stage.wait(.seconds(2))
            #expect(stage.redis.errorReplies - before <= 100, "errors in two seconds")
            let lines = try stage.logText().split(separator: "\n").filter { $0.contains("no_permission") }
            #expect((1...4).contains(lines.count), "one line per cause and ten seconds: \(lines.count)")
            try stage.redis(["ACL SETUSER default +eval +evalsha"])
            try stage.settle()
            let seen = try stage.look()
            for user in users { #expect(seen.outcomes(of: "\(user)-1") == ["\(user)/phone accepted ok 5"]) }
        }
    }
}
