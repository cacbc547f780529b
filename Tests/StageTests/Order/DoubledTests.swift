// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage
import Worker

/// What went out once does not go out again.
struct DoubledTests {
    /// Design 5, G3: what APNs did not process is not in flight, and goes with its partition.
    @Test func aMemberThatJoinsWhileAPNsRefusesDoublesNothing() throws {
        var settings = LocalCluster.Settings()
        settings.sessionMs = LocalCluster.Settings.shortSessionMs
        try Stage.with(settings) { stage in
            let crowd = Crowd(name: "joined", count: 400)
            let first = try stage.worker
            try stage.play(state: crowd.binds)
            stage.answerPushes(.unavailable)
            try stage.writeEvents(crowd.messages)
            try until("all are in work, and APNs refused some") {
                let refused = stage.apns.counters.rejected["ServiceUnavailable"] ?? 0
                let pending = try stage.metric("carillon_pending_recipients")
                return refused > 0 && pending == crowd.count
            }
            let second = try stage.startWorker(waits: false)
            try until("both have their share") {
                let shares = (first.status().shards + second.status().shards).map(\.assignedPartitions)
                return !shares.contains(0) && shares.reduce(0, +) == 8
            }
            stage.answerPushes(nil)
            _ = try stage.look(until: "everyone has a result") { seen in
                Set(seen.results.compactMap { $0["uid"]?.string }).count == crowd.count
            }
            for worker in [first, second] { #expect(try stage.stop(worker)) }
            let seen = try stage.look()
            let accepted = crowd.accepted(seen.pushes)
            #expect(seen.doubled.count == 0, "\(accepted.reduce(0, +)) acceptances of \(crowd.count) pushes")
            #expect(accepted.count { $0 == 0 } == 0)
        }
    }

    /// Design 5, G3: a push that came back from `carillon.parked` is on a stream when its partition goes, and APNs puts it
    /// off once more. The next owner takes long to push it: by then the former one would have thought its time come.
    @Test func aReturnedPushThatIsPutOffWhileItsPartitionGoesIsTheNextOwnersAlone() throws {
        var settings = LocalCluster.Settings.oneShard
        settings.appLines = "    limits: {answer_s: 20}\n"
        settings.drainSeconds = 25
        try Stage.bare(settings) { stage in
            let crowd = Crowd(name: "returned", count: 20)
            let uids = (0..<crowd.count).map(crowd.uid)
            try stage.redis(
                [Gateway.lease("gw-p")]
                    + uids.map { Gateway.presence($0, "pc", platform: "pc", gateway: "gw-p") })
            let state =
                crowd.binds + [.bind("before")] + uids.map { .ack($0, "pc", ["\($0)-m"]) }
                + uids.map { .state("settings", $0, #""push_when_desktop_online":false,"hold_s":8"#) }
            try stage.writeState(state)
            let first = try stage.startWorker(waits: false)
            try stage.awaitState(first)
            // APNs takes a single push on a connection before its first answer.
            try stage.writeEvents([.message("before", to: ["before"])])
            _ = try stage.look(until: "a push was answered") {
                $0.outcomes(of: "before") == ["before/phone accepted ok 1"]
            }
            stage.answerPushes(.putOff(seconds: 10, afterMs: 6000))
            try stage.writeEvents(crowd.messages)
            try until("all have come back and are on streams") {
                stage.apns.counters.requests > crowd.count
            }
            stage.answerPushes(.late(12_000))
            let second = try stage.startWorker(waits: false)
            _ = try stage.look(until: "everyone is pushed") { seen in
                crowd.accepted(seen.pushes).allSatisfy { $0 > 0 }
            }
            for worker in [first, second] { #expect(try stage.stop(worker)) }
            let seen = try stage.look()
            #expect(crowd.accepted(seen.pushes).count { $0 != 1 } == 0, "\(seen.doubled.count) pushed twice")
        }
    }

    /// Design 5, G2: after a crash only what was in flight, and what went out in the second before it.
    @Test func aCrashDoublesNothingThatWentOutBeforeWhileRedisTookNoWrites() throws {
        let settings = LocalCluster.Settings.oneShard
        try Stage.bare(settings) { stage in
            let crowd = Crowd(name: "full", count: 300)
            try stage.writeState(crowd.binds)
            let first = try stage.startWorker(waits: false)
            try stage.awaitState(first)
            try stage.redis(["CONFIG SET maxmemory 1"])
            try stage.writeEvents(crowd.messages)
            let pushed = try stage.look(until: "everyone has a result") { seen in
                Set(seen.results.compactMap { $0["uid"]?.string }).count == crowd.count
            }
            #expect(pushed.doubled.count == 0)
            stage.wait(untilMs: nowMs + 3000)
            stage.kill(first)
            try stage.redis(["CONFIG SET maxmemory 0"])
            let second = try stage.startWorker(waits: false)
            for next in ["second", "third"] {
                try stage.writeEvents(
                    (0..<crowd.count).map { .message("\(next)-\($0)", to: [crowd.uid($0)], conv: "c-full-\($0)") })
                _ = try stage.look(until: "the \(next) messages have results") { seen in
                    seen.results.count { $0["msg_id"]?.string?.hasPrefix(next) ?? false } == crowd.count
                }
                try until("nothing is in hand") {
                    second.metric("carillon_pending_events") == 0
                }
            }
            let seen = try stage.look()
            #expect(seen.doubled.count == 0, "of \(crowd.count) that went out before")
            let badges = seen.results.filter { $0["msg_id"]?.string?.hasPrefix("third") ?? false }
                .map { $0["badge"]?.int }
            #expect(badges.count { $0 != 3 } == 0, "what was owed is counted")
            #expect(try stage.stop(second))
        }
    }

    /// Design 5, G2: the same of what was done behind a record that waits, which keeps the committed offset.
    @Test func aCrashDoublesNothingBehindARecordThatWaitsWhileRedisTakesNoWrites() throws {
        var settings = LocalCluster.Settings.oneShard
        settings.leaveSlowUnanswered(answerSeconds: 300)
        settings.drainSeconds = 300
        try Stage.bare(settings) { stage in
            let crowd = Crowd(name: "behind", count: 200)
            let waiting = "behind-waits"
            try stage.writeState(
                crowd.binds + [.bind(waiting, as: token(waiting, "phone", TokenPrefix.slow))])
            let first = try stage.startWorker(waits: false)
            try stage.awaitState(first)
            // APNs takes a single push on a connection before its first answer.
            try stage.writeEvents([.message("before", to: [crowd.uid(0)])])
            _ = try stage.look(until: "a push was answered") { !$0.outcomes(of: "before").isEmpty }
            try stage.redis(["CONFIG SET maxmemory 1"])
            // One conversation is one partition.
            try stage.writeEvents(
                [.message("waits", to: [waiting], conv: "c-behind")]
                    + (0..<crowd.count).map { .message("done-\($0)", to: [crowd.uid($0)], conv: "c-behind") })
            let pushed = try stage.look(until: "everyone behind it has a result") { seen in
                seen.results.count { $0["msg_id"]?.string?.hasPrefix("done-") ?? false } == crowd.count
            }
            #expect(pushed.doubled.count == 0)
            // What went out in the last second may go out again; a commit follows within another.
            stage.wait(untilMs: nowMs + 2500)
            stage.kill(first)
            stage.apns.set(Scenario())
            let second = try stage.startWorker(waits: false)
            try stage.writeEvents([.message("after", to: [waiting], conv: "c-behind")])
            _ = try stage.look(until: "what waited and what came after have results") { seen in
                let waited = seen.results.filter { $0["uid"]?.string == waiting }
                return Set(waited.compactMap { $0["msg_id"]?.string }) == ["waits", "after"]
            }
            try until("nothing is in work") {
                second.metric("carillon_pending_recipients") == 0
            }
            let seen = try stage.look()
            #expect(seen.doubled.count == 0, "of \(crowd.count) that went out before")
            #expect(second.metric("carillon_events_settled_before_total") == Double(crowd.count))
            try stage.redis(["CONFIG SET maxmemory 0"])
            #expect(try stage.stop(second))
        }
    }

    /// Contract 5, step 5: finished means nothing more, whatever step 2 says.
    @Test func aRepeatOfAFinishedMessageAfterItsExpiryWritesNothing() throws {
        try Stage.with(.oneShard) { stage in
            try stage.play(state: [.bind("p1")])
            let expiresMs = nowMs + 20_000
            let message = Line.message("p1-1", to: ["p1"], #","expire_at_ms":\#(expiresMs)"#)
            var seen = try stage.play(events: [message])
            #expect(seen.outcomes(of: "p1-1") == ["p1/phone accepted ok 1"])
            stage.wait(untilMs: expiresMs + 1000)
            seen = try stage.play(events: [message])
            #expect(seen.outcomes(of: "p1-1") == ["p1/phone accepted ok 1"], "one final record")
        }
    }
}
