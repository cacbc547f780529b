// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage
import Worker

/// A machine whose clock is wrong.
@Suite struct ClockFaultTests {
    private static let dayMs: Int64 = 86_400_000

    @Test func aWorkerThatStartsADayAheadReadsNothingUntilItsClockIsRight() throws {
        try Stage.bare { stage in
            let worker = try stage.startWorker(clockAheadMs: 2 * Self.dayMs, waits: false)
            let crowd = Crowd(name: "ahead", count: 20)
            try stage.writeState(crowd.binds)
            try stage.writeEvents(crowd.messages)
            try until("/readyz says why") {
                let page = try stage.page("/readyz")
                return page.status == 503
                    && page.text.contains("clock: down: this machine's clock is 172800 s ahead of Redis")
            }
            try until("the group has shared out") { worker.assignedPartitions() == 8 }
            #expect(worker.status().shards.allSatisfy { $0.settledRecords == 0 })
            worker.setClock(aheadMs: 0)
            try until("everyone is pushed") { !crowd.accepted(stage.apns.requests).contains(0) }
            try until("/readyz is well") { try stage.page("/readyz").status == 200 }
            let seen = try stage.look()
            #expect(!seen.results.contains { $0["verdict"]?.string == "expired" })
        }
    }

    /// The clocks of two workers differ by 50 s, each less than `clock: degraded` names.
    @Test func `a Retry-After of another worker lasts as long by a clock that is ahead of that worker's`() throws {
        var settings = LocalCluster.Settings.oneShard
        settings.sessionMs = LocalCluster.Settings.shortSessionMs
        try Stage.bare(settings) { stage in
            let first = try stage.startWorker(clockAheadMs: -25_000)
            try stage.play(state: [.bind("slow")])
            stage.answerPushes(.putOff(seconds: 60))
            try stage.writeEvents([.message("slow-1", to: ["slow"])])
            let refusedMs = try #require(
                try stage.look(until: "it is parked") { !$0.parked.isEmpty }.pushes.first?.atMs)
            #expect(try stage.stop(first))
            try stage.startWorker(clockAheadMs: 25_000)
            stage.answerPushes(nil)
            try stage.writeEvents([.message("slow-2", to: ["slow"])])
            try until("both are pushed", within: .seconds(120)) {
                stage.apns.requests.count { $0.status == 200 } == 2
            }
            let waitsMs = stage.apns.requests.filter { $0.status == 200 }.map { $0.atMs - refusedMs }
            #expect(waitsMs.allSatisfy { $0 >= 60_000 }, "\(waitsMs)")
        }
    }

    @Test(arguments: [false, true])
    func aClockThatJumpsExpiresNothing(isOfMachine: Bool) throws {
        try Stage.with { stage in
            let worker = try stage.worker
            func setClock(aheadMs: Int64) {
                if isOfMachine { worker.setMachineClock(aheadMs: aheadMs) } else { worker.setClock(aheadMs: aheadMs) }
            }
            let crowd = Crowd(name: "jump", count: 20)
            try stage.play(state: crowd.binds)
            setClock(aheadMs: 120_000)
            try until("/readyz shows that it is off") {
                let page = try stage.page("/readyz")
                return page.status == 200 && page.text.contains("clock: degraded")
            }
            setClock(aheadMs: 120_000 + Self.dayMs)
            try stage.writeEvents(crowd.messages)
            try until("/readyz shows that it is wrong") {
                try stage.page("/readyz").text.contains("clock: down")
            }
            setClock(aheadMs: 0)
            try until("everyone is pushed") { !crowd.accepted(stage.apns.requests).contains(0) }
            let seen = try stage.look()
            #expect(!seen.results.contains { $0["verdict"]?.string == "expired" })
            try until("the log says that it is right again") {
                try stage.logText().contains("this machine's clock is right again")
            }
        }
    }
}
