import PushCore
import Redis

/// Whose the tokens are that are pushed to: of all who are claimed in one turn together, where the server takes keys of
/// several slots in one call. That is half of what one by one costs it.
extension Claims {
    /// A bind takes the token from its former owner before the new one has it, which raises the version of the former one's
    /// tokens; a plain claim looks at that version behind its entry, so it needs to ask nobody.
    func mustAskOwners(_ candidate: Candidate) -> Bool { candidate.plainClaim == nil || !shard.areKeysWhole }

    /// How many owners there are to ask for.
    func tokenCount(_ candidate: Candidate) -> Int {
        var count = 0
        for place in candidate.pushedTokens where candidate.recipient.tokens.indices.contains(place) { count += 1 }
        return count
    }

    func askOwners(_ job: RecipientJob, _ candidate: Candidate) {
        for place in candidate.pushedTokens where candidate.recipient.tokens.indices.contains(place) {
            guard shard.asksTogether else {
                askOwner(job, candidate, place)
                continue
            }
            let app = job.event.app.id
            if let openOwners, openOwners.app != app { sendOwners() }
            let batch = openOwners ?? OwnerBatch(app: app)
            openOwners = batch
            batch.append(job.ref, place: place, hex: candidate.recipient.tokens[place].record.hex)
            if batch.tokens.count >= shard.limits.claimsPerCall { sendOwners() }
        }
    }

    func askOwner(_ job: RecipientJob, _ candidate: Candidate, _ place: Int) {
        guard candidate.recipient.tokens.indices.contains(place) else { return }
        let token = candidate.recipient.tokens[place].record.hex
        ask(job) { (store) throws(RedisFault) in
            try store.owner(app: job.event.app.id, token: token, tag: job.tag(.owner, place))
        }
    }

    func sendOwners() {
        guard let batch = openOwners.take() else { return }
        if batch.tokens.count == 1 {
            return forEachToken(batch) { job, candidate, place in askOwner(job, candidate, place) }
        }
        batch.ref = ownerBatches.insert(batch)
        do throws(RedisFault) {
            try shard.store.owners(app: batch.app, tokens: batch.hexes, tag: Tag(batch.ref, .owners).bits)
        } catch {
            didFailOwners(batch, error)
        }
    }

    func didReadOwners(_ batch: OwnerBatch, _ reply: borrowing RedisReply) {
        ownerBatches.remove(batch.ref)
        guard reply.count == batch.tokens.count else {
            return forEachToken(batch) { job, _, _ in answered(job, failed: true) }
        }
        var next = 0
        reply.forEach { owner in
            let token = batch.tokens[next]
            next += 1
            if let job = claiming(token.recipient), let candidate = job.candidate {
                takeOwner(owner, job, candidate, token.place)
            }
        }
    }

    func didFailOwners(_ batch: OwnerBatch, _ fault: RedisFault) {
        ownerBatches.remove(batch.ref)
        if fault.scope == .call { shard.noteRefusedTogether(fault) }
        forEachToken(batch) { job, candidate, place in
            switch fault.scope {
            case .key, .call: askOwner(job, candidate, place)
            case .connection, .server, .writes: answered(job, failed: true)
            }
        }
    }

    private func forEachToken(_ batch: OwnerBatch, _ body: (RecipientJob, Candidate, Int) -> Void) {
        for token in batch.tokens {
            if let job = claiming(token.recipient), let candidate = job.candidate { body(job, candidate, token.place) }
        }
    }

    func takeOwner(_ reply: borrowing RedisReply, _ job: RecipientJob, _ candidate: Candidate, _ place: Int) {
        if candidate.recipient.tokens.indices.contains(place) {
            switch OwnerReply.standing(reply, uid: job.uid, token: candidate.recipient.tokens[place]) {
            case .owned: break
            case .rebound:
                candidate.hasReboundToken = true
                candidate.lostTokens.append(place)
            case .moved: candidate.lostTokens.append(place)
            }
        }
        answered(job, failed: false)
    }
}
