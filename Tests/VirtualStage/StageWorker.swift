// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Processes
package import SimulatedFleet
import SimulatedSystem
import Telemetry
package import Worker

/// A worker on a stage: its shards, and the operator's pages.
package final class StageWorker {
    package let seat: WorkerSeat
    private let loop: Loop
    private var view: ProcessView?
    private var process: SimulatedProcess { seat.process }

    private let clock: WallClock
    private var aheadMs: Int64 = 0

    init(_ seat: WorkerSeat, _ configuration: Configuration, clock: WallClock, log: Log) throws {
        self.seat = seat
        self.clock = clock
        loop = try seat.process.makeLoop("operator")
        seat.didEnd = { [unowned self] in close() }
        var fault: StartFault?
        process.run(on: loop) {
            let view = ProcessView(loop: loop, configuration: configuration, log: log, registry: seat.registry)
            do throws(StartFault) {
                try view.open(configuration.http, oldestTurn: { 0 })
                self.view = view
            } catch {
                fault = error
            }
        }
        if let fault { throw fault }
    }

    private func close() {
        guard !process.isDead else { return view = nil }
        process.run(on: loop) { view = nil }
    }

    package var isRunning: Bool { !process.isDead }

    /// The present state; the pages show it too.
    @discardableResult
    package func status() -> ProcessSnapshot {
        let statuses = seat.status
        process.run(on: loop) { view?.show(statuses) }
        return view?.snapshot ?? ProcessSnapshot()
    }

    var port: UInt16 { view?.port ?? 0 }

    func beginDraining() { process.run(on: loop) { view?.beginDraining() } }

    /// The sum of a metric's series with a label.
    package func metric(_ name: String, _ label: String = "") -> Double {
        // A histogram's series have names of their own.
        let families: Set = [name, name.hasSuffix("_count") ? String(name.dropLast("_count".count)) : name]
        return MetricsText(String(decoding: seat.registry.exposition(of: families), as: UTF8.self)).sum(name, label)
    }

    /// Records settled since its start.
    package var settled: Int { seat.status.reduce(0) { $0 + Int($1.settledRecords) } }

    /// The clock that it goes by is ahead of the stage's by that from now on.
    package func setClock(aheadMs: Int64) {
        clock.move(byMs: aheadMs - self.aheadMs)
        self.aheadMs = aheadMs
    }

    /// The clock of its machine is ahead by that: of what reads the time without `ShardClock`, too.
    package func setMachineClock(aheadMs: Int64) { process.setWall(aheadMs: aheadMs) }

    package func assignedPartitions() -> Int { seat.status.reduce(0) { $0 + $1.assignedPartitions } }
}
