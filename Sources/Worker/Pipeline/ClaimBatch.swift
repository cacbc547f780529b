/// Recipients of one message whose claims go to Redis in one call, and whose tokens' owners in another.
final class ClaimBatch {
    let event: EventJob
    let counted: Bool
    var slot = 0
    var generation: UInt32 = 0
    private(set) var jobs: [RecipientJob] = []
    /// Tokens that are pushed to, each with its place among those of its recipient.
    private(set) var tokens: [(job: RecipientJob, index: Int)] = []
    /// Replies that are still to come.
    var awaiting = 0

    init(_ event: EventJob, counted: Bool) {
        self.event = event
        self.counted = counted
    }

    func append(_ job: RecipientJob) {
        jobs.append(job)
        for token in job.pushedTokens { tokens.append((job, token)) }
    }

    func tag(_ stage: Tag.Stage) -> UInt64 { Tag(slot: slot, generation: generation, stage: stage).bits }
}
