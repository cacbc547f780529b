// SPDX-License-Identifier: Apache-2.0
import Digits
import Glibc
public import PushCore

extension Event {
    /// Whether the record's key is neither the conversation's id nor a user's: records of one user or conversation then have
    /// no order.
    ///
    /// A Live Activity has no conversation: the id of the activity is a usual key too.
    public func hasUnusualKey(_ key: UnsafeRawBufferPointer?) -> Bool {
        guard let key, key.count > 0 else { return true }
        switch body {
        case .userState(let state): return !key.holds(state.uid)
        case .message(let shared):
            return shared.read { message in
                !key.holds(message.conversation.id) && !key.holds(message.from.uid)
                    && !(message.to.uids?.count == 1 && key.holds(message.to.uids?.first ?? ""))
            }
        case .liveActivity(let activity):
            // A long list names too many users for a key.
            return !key.holds(activity.activityID) && !(activity.channel.map { key.holds($0) } ?? false)
                && !activity.uids.prefix(32).contains { key.holds($0) }
        }
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func holds(_ text: String) -> Bool {
        text.withUTF8Bytes { text in
            guard text.count == count, let one = baseAddress, let other = text.baseAddress else { return false }
            return memcmp(one, other, count) == 0
        }
    }
}
