// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// Owners of the tokens to push to: one query for all claims of a turn, if the server accepts keys of several slots in
/// one call. That is half the cost of single queries.
extension Claims {
    /// If the owners of the user's token version are known, a plain claim asks for none: it checks the version after
    /// its entry.
    func mustAskOwners(_ candidate: Candidate) -> Bool {
        // A channel has no owner.
        if candidate.recipient.uid.isEmpty { return false }
        return candidate.plainClaim == nil || !candidate.areOwnersKnown || !shard.areKeysWhole
    }

    /// Asks for all owners instead of only those pushed to, so that the next push needs no query.
    func mayLearnOwners(_ candidate: Candidate) -> Bool {
        candidate.plainClaim != nil && candidate.asksOwners && shard.areKeysWhole && candidate.tokenVersion != 0
            && candidate.recipient.tokens.count <= KnownOwners.tokensMax
    }

    /// Number of owners to ask for.
    func tokenCount(_ candidate: Candidate) -> Int {
        var count = 0
        forEachAskedToken(candidate) { _ in count += 1 }
        return count
    }

    func forEachAskedToken(_ candidate: Candidate, _ body: (Int) -> Void) {
        let places = candidate.recipient.tokens.indices
        if candidate.learnsOwners { return places.forEach(body) }
        for place in candidate.pushedTokens where places.contains(place) { body(place) }
    }

    func askOwners(_ job: RecipientJob, _ candidate: Candidate) {
        forEachAskedToken(candidate) { place in
            guard shard.batchesAcrossUsers else { return askOwner(job, candidate, place) }
            let app = job.event.app.id
            if let open = owners.open, open.head != app { sendOwners() }
            let token = AskedToken(recipient: job.ref, place: place, hex: candidate.recipient.tokens[place].record.hex)
            if owners.add(token, app) >= shard.limits.claimsPerCall { sendOwners() }
        }
    }

    /// All of the user's tokens belong to the user: the next push trusts their version.
    func noteOwners(_ job: RecipientJob, _ candidate: Candidate) {
        guard let reign = shard.reign(of: job) else { return }
        // If this is lost, they are asked for again.
        try? shard.store.noteOwners(
            app: job.event.app.id, uid: job.uid, version: candidate.tokenVersion, reign: reign, tag: job.tag(.note))
    }

    func askOwner(_ job: RecipientJob, _ candidate: Candidate, _ place: Int) {
        guard candidate.recipient.tokens.indices.contains(place) else {
            return shard.mistake("an owner is asked of a token that the recipient does not have")
        }
        let token = candidate.recipient.tokens[place].record.hex
        ask(job) { (store) throws(RedisFault) in
            try store.owner(app: job.event.app.id, token: token, tag: job.tag(.owner, place))
        }
    }

    func sendOwners() {
        guard let batch = owners.takeOpen() else { return }
        if batch.members.count == 1 {
            return forEachToken(batch) { job, candidate, place in askOwner(job, candidate, place) }
        }
        let fault = owners.ask(batch, .owners) { (tag) throws(RedisFault) in
            try shard.store.owners(app: batch.head, tokens: batch.members.map(\.hex), tag: tag)
        }
        if let fault { didFailOwners(batch, fault) }
    }

    func didReadOwners(_ batch: Batch<String, AskedToken>, _ reply: borrowing RedisReply) {
        let isWhole = batch.forEach(in: reply) { token, owner in
            if let job = claiming(token.recipient), let candidate = job.candidate {
                takeOwner(owner, job, candidate, token.place)
            }
        }
        if !isWhole { forEachToken(batch) { job, _, _ in answered(job, failed: true) } }
    }

    func didFailOwners(_ batch: Batch<String, AskedToken>, _ fault: RedisFault) {
        let meaning = shard.meaning(ofBatch: fault)
        forEachToken(batch) { job, candidate, place in
            switch meaning {
            case .askAlone: askOwner(job, candidate, place)
            case .refused, .failed: answered(job, failed: true)
            }
        }
    }

    private func forEachToken(
        _ batch: Batch<String, AskedToken>, _ body: (RecipientJob, Candidate, Int) -> Void
    ) {
        for token in batch.members {
            if let job = claiming(token.recipient), let candidate = job.candidate { body(job, candidate, token.place) }
        }
    }

    func takeOwner(_ reply: borrowing RedisReply, _ job: RecipientJob, _ candidate: Candidate, _ place: Int) {
        if candidate.recipient.tokens.indices.contains(place) {
            let standing = OwnerReply.standing(reply, uid: job.uid, token: candidate.recipient.tokens[place])
            if standing != .owned { candidate.learnsOwners = false }
            // The removal of a refused one that is still there was interrupted: it is refused again, and removed.
            if standing == .rebound || standing == .moved { candidate.lostTokens.append(place) }
            if standing == .rebound, candidate.pushedTokens.contains(place) { candidate.hasReboundToken = true }
        }
        answered(job, failed: false)
    }
}

/// A token with its recipient, and its index among the recipient's tokens.
struct AskedToken {
    let recipient: WorkRef
    let place: Int
    let hex: String
}
