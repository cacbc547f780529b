import JSON
import LocalServers
import Processes
import Simulator
import StageWords
import Support
import Testing
import Worker

extension Rows {
    /// What went out once does not go out again.
    struct DoubledTests {
        /// Design 5, G3: what APNs did not process is not in flight, and goes with its partition.
        @Test func aMemberThatJoinsWhileAPNsRefusesDoublesNothing() async throws {
            var settings = LocalCluster.Settings()
            settings.sessionMs = LocalCluster.Settings.shortSessionMs
            try await Stage.with(settings) { stage in
                let crowd = Crowd(name: "joined", count: 400)
                let first = try await stage.worker
                try await stage.play(state: crowd.binds)
                await stage.answerPushes(.unavailable)
                try await stage.writeEvents(crowd.messages)
                try await until("all are in work, and APNs refused some") {
                    let refused = await stage.world.simulator.counters.rejected["ServiceUnavailable"] ?? 0
                    let pending = try await stage.metric("carillon_pending_recipients")
                    return refused > 0 && pending == crowd.count
                }
                let second = try await stage.startWorker(waits: false)
                try await until("both have their share") {
                    let shares = await (first.status().shards + second.status().shards).map(\.assignedPartitions)
                    return !shares.contains(0) && shares.reduce(0, +) == 8
                }
                await stage.answerPushes(nil)
                _ = try await stage.look(until: "everyone has a result") { seen in
                    Set(seen.results.compactMap { $0["uid"]?.string }).count == crowd.count
                }
                for worker in [first, second] { #expect(await stage.stop(worker)) }
                let seen = try await stage.look()
                let accepted = crowd.accepted(seen.pushes)
                #expect(seen.doubled.count == 0, "\(accepted.reduce(0, +)) acceptances of \(crowd.count) pushes")
                #expect(accepted.count { $0 == 0 } == 0)
            }
        }

        /// Design 5, G3: a push that came back from `carillon.parked` is on a stream when its partition goes, and APNs puts it
        /// off once more. The next owner takes long to push it: by then the former one would have thought its time come.
        @Test func aReturnedPushThatIsPutOffWhileItsPartitionGoesIsTheNextOwnersAlone() async throws {
            var settings = LocalCluster.Settings.oneShard
            settings.appLines = "    limits: {answer_s: 20}\n"
            settings.drainSeconds = 25
            try await Stage.bare(settings) { stage in
                let crowd = Crowd(name: "returned", count: 20)
                let uids = (0..<crowd.count).map(crowd.uid)
                try await stage.redis(
                    [Gateway.lease("gw-p")]
                        + uids.map { Gateway.presence($0, "pc", platform: "pc", gateway: "gw-p") })
                let state =
                    crowd.binds + [.bind("before")] + uids.map { .ack($0, "pc", ["\($0)-m"]) }
                    + uids.map { .state("settings", $0, #""push_when_desktop_online":false,"hold_s":8"#) }
                try await stage.writeState(state)
                let first = try await WorkerRun(stage)
                try await first.awaitState()
                // APNs takes a single push on a connection before its first answer.
                try await stage.writeEvents([.message("before", to: ["before"])])
                _ = try await stage.look(until: "a push was answered") {
                    $0.outcomes(of: "before") == ["before/phone accepted ok 1"]
                }
                await stage.answerPushes(.putOff(seconds: 10, afterMs: 6000))
                try await stage.writeEvents(crowd.messages)
                try await until("all have come back and are on streams") {
                    await stage.world.simulator.counters.requests > crowd.count
                }
                await stage.answerPushes(.late(12_000))
                let second = try await WorkerRun(stage)
                _ = try await stage.look(until: "everyone is pushed") { seen in
                    crowd.accepted(seen.pushes).allSatisfy { $0 > 0 }
                }
                for worker in [first, second] { #expect(try await worker.drain() == 0) }
                let seen = try await stage.look()
                #expect(crowd.accepted(seen.pushes).count { $0 != 1 } == 0, "\(seen.doubled.count) pushed twice")
            }
        }

        /// Design 5, G2: after a crash only what was in flight, and what went out in the second before it.
        @Test func aCrashDoublesNothingThatWentOutBeforeWhileRedisTookNoWrites() async throws {
            let settings = LocalCluster.Settings.oneShard
            try await Stage.bare(settings) { stage in
                let crowd = Crowd(name: "full", count: 300)
                try await stage.writeState(crowd.binds)
                let first = try await WorkerRun(stage)
                try await first.awaitState()
                try await stage.redis(["CONFIG SET maxmemory 1"])
                try await stage.writeEvents(crowd.messages)
                let pushed = try await stage.look(until: "everyone has a result") { seen in
                    Set(seen.results.compactMap { $0["uid"]?.string }).count == crowd.count
                }
                #expect(pushed.doubled.count == 0)
                try await stage.wait(untilMs: nowMs + 3000)
                await first.kill()
                try await stage.redis(["CONFIG SET maxmemory 0"])
                let second = try await WorkerRun(stage)
                for next in ["second", "third"] {
                    try await stage.writeEvents(
                        (0..<crowd.count).map { .message("\(next)-\($0)", to: [crowd.uid($0)], conv: "c-full-\($0)") })
                    _ = try await stage.look(until: "the \(next) messages have results") { seen in
                        seen.results.count { $0["msg_id"]?.string?.hasPrefix(next) ?? false } == crowd.count
                    }
                    try await until("nothing is in hand") {
                        try await second.metrics().sum("carillon_pending_events") == 0
                    }
                }
                let seen = try await stage.look()
                #expect(seen.doubled.count == 0, "of \(crowd.count) that went out before")
                let badges = seen.results.filter { $0["msg_id"]?.string?.hasPrefix("third") ?? false }
                    .map { $0["badge"]?.int }
                #expect(badges.count { $0 != 3 } == 0, "what was owed is counted")
                #expect(try await second.drain() == 0)
            }
        }

        /// Design 5, G2: the same of what was done behind a record that waits, which keeps the committed offset.
        @Test func aCrashDoublesNothingBehindARecordThatWaitsWhileRedisTakesNoWrites() async throws {
            var settings = LocalCluster.Settings.oneShard
            settings.leaveSlowUnanswered(answerSeconds: 300)
            settings.drainSeconds = 300
            try await Stage.bare(settings) { stage in
                let crowd = Crowd(name: "behind", count: 200)
                let waiting = "behind-waits"
                try await stage.writeState(
                    crowd.binds + [.bind(waiting, as: token(waiting, "phone", TokenPrefix.slow))])
                let first = try await WorkerRun(stage)
                try await first.awaitState()
                // APNs takes a single push on a connection before its first answer.
                try await stage.writeEvents([.message("before", to: [crowd.uid(0)])])
                _ = try await stage.look(until: "a push was answered") { !$0.outcomes(of: "before").isEmpty }
                try await stage.redis(["CONFIG SET maxmemory 1"])
                // One conversation is one partition.
                try await stage.writeEvents(
                    [.message("waits", to: [waiting], conv: "c-behind")]
                        + (0..<crowd.count).map { .message("done-\($0)", to: [crowd.uid($0)], conv: "c-behind") })
                let pushed = try await stage.look(until: "everyone behind it has a result") { seen in
                    seen.results.count { $0["msg_id"]?.string?.hasPrefix("done-") ?? false } == crowd.count
                }
                #expect(pushed.doubled.count == 0)
                // What went out in the last second may go out again; a commit follows within another.
                try await stage.wait(untilMs: nowMs + 2500)
                await first.kill()
                await stage.world.simulator.setScenario(Scenario())
                let second = try await WorkerRun(stage)
                try await stage.writeEvents([.message("after", to: [waiting], conv: "c-behind")])
                _ = try await stage.look(until: "what waited and what came after have results") { seen in
                    let waited = seen.results.filter { $0["uid"]?.string == waiting }
                    return Set(waited.compactMap { $0["msg_id"]?.string }) == ["waits", "after"]
                }
                try await until("nothing is in work") {
                    try await second.metrics().sum("carillon_pending_recipients") == 0
                }
                let seen = try await stage.look()
                #expect(seen.doubled.count == 0, "of \(crowd.count) that went out before")
                #expect(try await second.metrics().sum("carillon_events_settled_before_total") == Double(crowd.count))
                try await stage.redis(["CONFIG SET maxmemory 0"])
                #expect(try await second.drain() == 0)
            }
        }

        /// Contract 5, step 5: finished means nothing more, whatever step 2 says.
        @Test func aRepeatOfAFinishedMessageAfterItsExpiryWritesNothing() async throws {
            try await Stage.with(.oneShard) { stage in
                try await stage.play(state: [.bind("p1")])
                let expiresMs = nowMs + 20_000
                let message = Line.message("p1-1", to: ["p1"], #","expire_at_ms":\#(expiresMs)"#)
                var seen = try await stage.play(events: [message])
                #expect(seen.outcomes(of: "p1-1") == ["p1/phone accepted ok 1"])
                try await stage.wait(untilMs: expiresMs + 1000)
                seen = try await stage.play(events: [message])
                #expect(seen.outcomes(of: "p1-1") == ["p1/phone accepted ok 1"], "one final record")
            }
        }
    }
}
