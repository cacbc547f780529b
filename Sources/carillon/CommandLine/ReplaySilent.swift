// SPDX-License-Identifier: Apache-2.0
import Digits
import Recording
import Redis
import Worker

/// Looks up recipients without an outcome by their marks in Redis.
enum ReplaySilent {
    /// Maximum number of lookups. The rest is reported as unknown.
    static let max = 200_000
    private static let atOnce = 256

    static func judge(
        _ worker: inout ReplayReport.Worker, _ run: ReplayRun, _ configuration: Configuration
    ) async throws {
        let silent = Swift.max(0, worker.expected - worker.answered - worker.endedWhole)
        worker.unknown = silent
        if silent == 0 { return }
        guard configuration.results == .all else {
            worker.unknownWhy = "results: \(configuration.results.rawValue) leaves their records out"
            return
        }
        let found = try run.silent(max: max)
        worker.unknownWhy = found.count < silent ? "\(found.count) of \(silent) were looked at" : ""
        do throws(RedisOpeningFault) {
            let state = try await RedisOpening.open(configuration)
            do throws(RedisFault) {
                try await judge(&worker, found, state)
            } catch {
                worker.unknownWhy = "Redis: \(error)"
            }
            await state.close()
        } catch {
            worker.unknownWhy = error.message
        }
        if worker.unknown > 0, worker.unknownWhy.isEmpty { worker.unknownWhy = "their records are not settled" }
    }

    private static func judge(
        _ worker: inout ReplayReport.Worker, _ found: [(pair: PairName, eventID: String, writtenMs: Int64)],
        _ state: StateReader
    ) async throws(RedisFault) {
        for start in stride(from: 0, to: found.count, by: atOnce) {
            let some = Array(found[start..<min(start + atOnce, found.count)])
            let standings = try await PairReads(state).standings(of: some.map(\.pair))
            for (one, standing) in zip(some, standings) {
                switch standing?.progress {
                case .ended?:
                    // This event's mark, made after it was written: the record is missing.
                    let isOurs =
                        standing?.trace.map { $0.eventID.isSame(as: one.eventID) && $0.atMs >= one.writtenMs } ?? false
                    if isOurs { worker.lost += 1 } else { worker.repeats += 1 }
                case .begun?: worker.open += 1
                case .revokedOnly?, nil:
                    // Nothing is promised before the record is settled.
                    if !worker.isSettled { continue }
                    worker.lost += 1
                }
                worker.unknown -= 1
            }
        }
    }
}
