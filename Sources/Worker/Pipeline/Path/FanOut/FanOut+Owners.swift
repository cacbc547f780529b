// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// The recipients of a message to tokens: the tokens' owners (contract section 2, `to.tokens`).
extension FanOut {
    func readOwners(of event: EventJob, _ tokens: ArraySlice<String>) {
        let page = OwnerPage(count: tokens.count)
        event.fanOutPhase = .readingOwners(page)
        for (place, token) in tokens.enumerated() {
            do throws(RedisFault) {
                try shard.store.owner(app: event.app.id, token: token, tag: event.tag(.tokenOwner, place))
            } catch {
                if page.failed() { took(page, of: event) }
            }
        }
    }

    func didReadOwner(_ tag: Tag, _ reply: borrowing RedisReply) {
        guard let event = work.event(tag.ref), case .readingOwners(let page) = event.fanOutPhase else {
            return shard.late()
        }
        let owner = OwnerReply(reply).flatMap { $0.isBound ? $0.uid : nil }
        if page.answered(Int(tag.index), owner) { took(page, of: event) }
    }

    /// A record of an owner that can never be read is none.
    func didFailOwner(_ tag: Tag, isAbsent: Bool) {
        guard let event = work.event(tag.ref), case .readingOwners(let page) = event.fanOutPhase else {
            return shard.late()
        }
        let isLast = isAbsent ? page.answered(Int(tag.index), nil) : page.failed()
        if isLast { took(page, of: event) }
    }

    private func took(_ page: OwnerPage, of event: EventJob) {
        if page.hasFailed { return retryLater(event) }
        event.didRead()
        event.audience.take(owners: page.uids)
    }
}
