// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import PushCore
import Redis

/// `limits.background_per_hour`: a background push takes a place in its device's hour just before it is made. One without a place
/// is parked until the next hour, and the newest of those goes then for all of them.
extension Sender {
    /// - Returns: `.kept` if the push waits for the answer of Redis.
    func takePlace(_ job: RecipientJob, _ index: Int) -> Passage {
        guard let push = job.devices[index].push, !push.hasPlace, let token = push.token else { return .goesOn }
        let waited = job.parking?.returned.containsSame(token.device) ?? false
        do throws(RedisFault) {
            try shard.store.takePlace(
                app: job.event.app.id, uid: job.uid, device: token.device, push.id, sentMs: job.event.sentMs,
                limit: job.event.app.backgroundPerHour, hasWaited: waited, nowMs: shard.nowMs,
                tag: job.tag(.hour, index))
        } catch {
            didNotTakePlace(job, index, error, isAbsent: false)
        }
        return .kept
    }

    func didTakePlace(_ job: RecipientJob, _ index: Int, _ answer: Int64) {
        guard job.devices[index].phase == .due else { return shard.late() }
        switch HourAnswer(answer) {
        case .merged: drop(job.deviceRef(index), .check(.stop(.coalesced)))
        case .wait(let ms) where job.mayPark:
            drop(job.deviceRef(index), .park(.background, dueMs: shard.steadyMs &+ ms, client: nil))
        // The topic does not take it, and memory is not for an hour.
        case .place, .wait: go(job, index)
        }
    }

    /// The limit is not worth a push: without a count it goes.
    func didNotTakePlace(_ job: RecipientJob, _ index: Int, _ fault: RedisFault, isAbsent: Bool) {
        guard index < job.devices.count, job.devices[index].phase == .due else { return shard.late() }
        if isAbsent || fault.isLasting { return go(job, index) }
        if fault.refusesWrite {
            shard.writes.refused(fault, nowNanos: shard.nowNanos)
            return go(job, index)
        }
        shard.timers.schedule(.retryCheck(.recipient(job.deviceRef(index))), dueNanos: shard.retryNanos(failures: 1))
    }

    private func go(_ job: RecipientJob, _ index: Int) {
        job.devices[index].push?.hasPlace = true
        makeReady(.recipient(job.deviceRef(index)))
    }
}

/// The answer of `HourScripts.takePlace`.
enum HourAnswer: Equatable {
    case place
    /// A newer push of the device went for it.
    case merged
    case wait(ms: Int64)

    init(_ number: Int64) { self = number == 0 ? .place : number < 0 ? .merged : .wait(ms: number) }
}
