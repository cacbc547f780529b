// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// Answers of Redis about badge updates.
extension BadgeUpdates {
    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        guard let update = work.badgeUpdate(tag.ref) else { return shard.late() }
        let index = Int(tag.index)
        switch tag.stage {
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
    func didFail(_ tag: Tag, _ fault: RedisFault) {
        guard let update = work.badgeUpdate(tag.ref) else { return shard.late() }
        let isBroken = shard.takeAsBroken(fault, key: "\(tag.stage) of \(update.app.id):\(update.uid)")
        switch tag.stage {
        case .updateUser, .updateDevices: answered(update, failed: !isBroken)
        case .updateOwner where isBroken: checked(update, Int(tag.index)) { $0.isOwned = false }
        case .updateBase where isBroken, .updateSize where isBroken:
            checked(update, Int(tag.index)) { $0.isNumberLost = true }
        default: checked(update, Int(tag.index)) { $0.hasFailed = true }
        }
    }
}
