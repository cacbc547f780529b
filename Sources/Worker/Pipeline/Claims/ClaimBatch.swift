import PushCore

/// Recipients of one message whose claims go to Redis in one call, and whose tokens' owners in another.
///
/// It holds references: who ended meanwhile is not found again when the answer comes.
final class ClaimBatch {
    let event: EventJob
    let counted: Bool
    var ref = WorkRef.none
    private(set) var recipients: [WorkRef] = []
    private(set) var uids: [String] = []
    /// Tokens that are pushed to, each with its place among those of its recipient.
    private(set) var tokens: [(recipient: WorkRef, place: Int)] = []
    private(set) var tokenHexes: [String] = []
    /// Replies that are still to come.
    var awaiting = 0

    init(_ event: EventJob, counted: Bool) {
        self.event = event
        self.counted = counted
    }

    func append(_ job: RecipientJob, _ candidate: Candidate) {
        recipients.append(job.ref)
        uids.append(job.uid)
        for place in candidate.pushedTokens where candidate.recipient.tokens.indices.contains(place) {
            tokens.append((job.ref, place))
            tokenHexes.append(candidate.recipient.tokens[place].record.hex)
        }
    }

    func tag(_ stage: Tag.Stage) -> UInt64 { Tag(ref, stage).bits }
}
