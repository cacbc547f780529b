/// Recipients of one message whose claims go to Redis in one call.
///
/// It holds references: who ended meanwhile is not found again when the answer comes.
final class ClaimBatch {
    let event: EventJob
    let counted: Bool
    var ref = WorkRef.none
    private(set) var recipients: [WorkRef] = []
    private(set) var uids: [String] = []

    init(_ event: EventJob, counted: Bool) {
        self.event = event
        self.counted = counted
    }

    func append(_ job: RecipientJob) {
        recipients.append(job.ref)
        uids.append(job.uid)
    }
}
