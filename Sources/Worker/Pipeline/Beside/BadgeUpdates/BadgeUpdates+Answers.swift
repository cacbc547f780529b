// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// Answers of Redis about badge updates.
extension BadgeUpdates {
    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        guard let update = work.badgeUpdate(tag.ref) else { return shard.late() }
        let index = Int(tag.index)
        switch tag.question {
        case .updateUser:
            var recipient = Recipient(uid: update.uid)
            RecipientReplies.user(reply, into: &recipient)
            update.tokens = recipient.tokens
            answered(update, failed: false)
        case .updateDevices:
            update.pushed = StateStore.devices(reply)
            answered(update, failed: false)
        case .updateBase:
            let base = BadgeReading(base: reply)
            checked(update, index) { $0.base = base }
        case .updateSize:
            let size = reply.int64 ?? 0
            checked(update, index) { $0.size = size }
        case .updateOwner:
            guard index < update.targets.count else {
                return shard.mistake("an answer about a device that the badge update does not have")
            }
            let isOwned = OwnerReply.allows(reply, uid: update.uid, token: update.targets[index].token)
            checked(update, index) { $0.isOwned = isOwned }
        default: break
        }
    }

    /// A key that can never be read counts as absent. Without the number nothing is pushed.
    func didFail(_ tag: Tag, isAbsent: Bool) {
        guard let update = work.badgeUpdate(tag.ref) else { return shard.late() }
        switch tag.question {
        case .updateUser, .updateDevices: answered(update, failed: !isAbsent)
        case .updateOwner where isAbsent: checked(update, Int(tag.index)) { $0.isOwned = false }
        case .updateBase where isAbsent, .updateSize where isAbsent:
            checked(update, Int(tag.index)) { $0.isNumberLost = true }
        default: checked(update, Int(tag.index), failed: true)
        }
    }
}
