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
