// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore
import Redis

/// The notes in the mark of a recipient that has not ended: what the next try, of this worker or another, must not repeat.
///
/// Best effort: a note that is lost with the connection costs at most one extra push.
struct MarkNotes {
    let shard: ShardContext

    /// A plain claim that takes longer than a push gets its mark, which gives `resume` more information.
    func writeClaim(of job: RecipientJob) {
        if job.openMark != .notYet { return }
        job.openMark = .mayExist
        try? shard.store.markClaimed(job.claimRequest(nowMs: shard.nowMs), tag: job.tag(.note))
    }

    /// Records for the next try which device was pushed last.
    func writeAccepted(of job: RecipientJob) {
        // Without a claim there is no mark to write this to.
        let index = Int(job.unmarkedDevice)
        job.unmarkedDevice = -1
        guard job.devices.indices.contains(index), !job.owesClaim else { return }
        writeClaim(of: job)
        let device = job.devices[index]
        let push = EarlierPush(
            device.route.device, device.push?.id, badge: device.push?.badge, isForced: job.isForced)
        write(of: job) { command in
            command.part(.accepted, push.device)
            if let push = push.note { command.part(.push, push) }
        }
    }

    /// Whether a device has a token tells a redelivery that the device was addressed. Of a connection without one the mark
    /// says so, where the user has other devices.
    func writeAddressed(of job: RecipientJob, _ index: Int, _ candidate: Candidate) {
        let device = job.devices[index].route.device
        guard job.devices.count > 1, !job.owesClaim,
            !candidate.recipient.tokens.contains(where: { $0.record.type == .alert && $0.device.isSame(as: device) })
        else { return }
        writeClaim(of: job)
        write(of: job) { $0.part(.addressed, device) }
    }

    /// A refused push may cost the device its token: the mark says that its end is recorded, while other devices are open.
    func writeRejected(of job: RecipientJob, _ index: Int) {
        if job.machine.openDevices == 0 || job.owesClaim { return }
        writeClaim(of: job)
        write(of: job) { $0.part(.addressed, job.devices[index].route.device) }
    }

    /// No note of the user names it, because later pushes do not wait for it. A repeat then goes where the record is read.
    func writeWait(of job: RecipientJob, _ record: ParkedRecord) {
        let untilMs = record.dueMs &- shard.steadyMs &+ shard.sharedMs
        write(of: job) { $0.part(.parked, EarlierWait(untilMs: untilMs, cause: record.cause).text) }
    }

    /// The recipient returned and is parked again: its record in the topic stays as it is, and the mark has the ends since. Accepted pushes
    /// have notes of their own.
    func writeEnds(of job: RecipientJob) {
        guard let record = job.event.parked?.record, !job.owesClaim else { return }
        let known = record.journal.endedDevices
        for end in job.journal.ends where end.verdict != .accepted {
            guard let device = end.device, !known.containsSame(device) else { continue }
            write(of: job) { $0.part(end, of: device) }
        }
    }

    /// APNs accepted a push about a Live Activity: a start begins it, an end ends it for all devices of the user. Before the marks,
    /// so that none of them says that the push is done while this is not known.
    func writeActivity(of job: RecipientJob) {
        guard let (action, id) = job.event.activity, action != .update, !job.event.isBroadcast else { return }
        let (app, sentMs) = (job.event.app.id, job.event.sentMs)
        if action == .start {
            try? shard.store.beginActivity(
                app: app, uid: job.uid, activityID: id, sentMs: sentMs, nowMs: shard.nowMs, tag: job.tag(.note))
        } else {
            try? shard.store.endActivity(
                app: app, uid: job.uid, activityID: id, sentMs: sentMs, nowMs: shard.nowMs, tag: job.tag(.note))
        }
    }

    private func write(of job: RecipientJob, _ notes: (inout RedisCommand) -> Void) {
        try? shard.store.note(
            app: job.event.app.id, uid: job.uid, job.event.subject, nowMs: shard.nowMs, tag: job.tag(.note), notes)
    }
}
