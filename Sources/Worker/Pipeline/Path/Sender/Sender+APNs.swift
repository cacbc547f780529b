// SPDX-License-Identifier: Apache-2.0
import APNs

/// The events of the APNs clients.
extension Sender: APNsClientDelegate {
    func apns(_ client: APNsClient, didFinish bits: UInt64, outcome: PushOutcome, attempts: Int) {
        guard let tag = Tag(bits) else { return shard.mistake("an answer with a tag that no push has") }
        let app = tag.question == .updatePush ? work.badgeUpdate(tag.ref)?.app : work.recipient(tag.ref)?.event.app
        outcomes.append(
            EndedPush(tag: tag, outcome: outcome, attempts: attempts, credential: app?.credential(of: client)))
        shard.requestTurn()
    }

    func apns(_ client: APNsClient, didHold bits: UInt64) {
        guard let tag = Tag(bits) else { return shard.mistake("a pause with a tag that no push has") }
        // A badge update that backs off keeps its device.
        if tag.question != .push { return }
        guard let job = work.recipient(tag.ref) else { return shard.late() }
        backOff(job, Int(tag.index))
    }

    /// A push that backed off is about to be tried again. It is kept if another shard has a push in flight for the
    /// device; the check then follows at its turn. Within one shard the APNs client sends one push per device at a
    /// time.
    private func tryAgain(_ job: RecipientJob, _ index: Int, _ ticket: PushTicket) -> Passage {
        guard queues.isShared, job.devices[index].phase == .backingOff else { return .goesOn }
        guard queues.enter(job.devices[index].queueKey, .recipient(job.deviceRef(index))) else {
            let badge = job.devices[index].push?.badge
            job.devices[index].push?.check = SendCheck(
                ticket: ticket, answers: Answers(), subject: SendCheck.Subject(badge: badge))
            return .kept
        }
        _ = job.devices[index].resume()
        return .goesOn
    }

    /// A push waited in the client: step 15 applies at the moment its stream opens.
    func apns(_ client: APNsClient, wantsCheck bits: UInt64, ticket: PushTicket) {
        guard let tag = Tag(bits) else { return shard.mistake("an answer with a tag that no push has") }
        if tag.question == .updatePush {
            updateChecks.append((DeviceRef(work: tag.ref, device: Int(tag.index)), ticket))
            return shard.requestTurn()
        }
        guard let job = work.recipient(tag.ref), job.isPushing(Int(tag.index)) else {
            _ = client.withdraw(ticket)
            return shard.late()
        }
        if TestBreak.isOn(.noRecheck) {
            let subject = SendCheck.Subject(badge: job.devices[Int(tag.index)].push?.badge)
            return goOn(job, Int(tag.index), SendCheck(ticket: ticket, answers: Answers(), subject: subject))
        }
        if TestBreak.isOn(.swallowRetry), client.withdraw(ticket) {
            return drop(job.deviceRef(Int(tag.index)), .check(.endedElsewhere(nil)))
        }
        if tryAgain(job, Int(tag.index), ticket) == .goesOn { check(job, Int(tag.index), ticket: ticket) }
    }

    /// The client logs its own events.
    func apns(_ client: APNsClient, stateChanged event: APNsClientEvent) {
        if event != .hasRoom { return }
        for app in apps {
            for waiting in app.clients where waiting.apns === client {
                let targets = waiting.stalled
                waiting.stalled = []
                for target in targets { makeReady(target) }
            }
        }
    }
}
