// SPDX-License-Identifier: Apache-2.0
/// Recipients of one message with one common claim call.
///
/// It holds references: a recipient that has ended is not found when the answer comes.
final class ClaimBatch {
    let event: EventJob
    let counted: Bool
    let withoutDevice: WithoutDevice?
    var ref = WorkRef.none
    private(set) var recipients: [WorkRef] = []
    private(set) var uids: [String] = []

    init(_ event: EventJob, counted: Bool, withoutDevice: WithoutDevice?) {
        self.event = event
        self.counted = counted
        self.withoutDevice = withoutDevice
    }

    func append(_ job: RecipientJob) {
        recipients.append(job.ref)
        uids.append(job.uid)
    }
}
