// SPDX-License-Identifier: Apache-2.0
/// The pushes of a conversation reach a device in the order of its messages.
extension Judge {
    mutating func checkOrder() {
        var newest: [String: (event: Sent, atNanos: UInt64)] = [:]
        var seen: Set<String> = []
        for push in observed.pushes where push.status == 200 {
            guard let event = event(of: push), event.kind != .activity, seen.insert(push.pid).inserted,
                let uid = owner(of: push.token, appliedBefore: event.atNanos, at: push.atNanos)
            else { continue }
            // A background push has a lane of its own.
            let key = "\(push.token) \(event.conversation) \(push.type)"
            // The copy in another partition has no order.
            if let before = newest[key], before.event.seq > event.seq, !before.event.isCopied,
                !mayComeLate(push, event, uid)
            {
                found(
                    "the order of a conversation",
                    "\(event.messageID) came to \(uid) after \(before.event.messageID)", event.messageID)
            }
            if newest[key].map({ $0.event.seq < event.seq }) ?? true { newest[key] = (event, push.atNanos) }
        }
    }

    /// Something made this push wait, and not only the ones before it.
    private func mayComeLate(_ push: Observed.Push, _ event: Sent, _ uid: String) -> Bool {
        if event.isDoubled || mayBeSeveral(event) { return true }
        // A repeat that is allowed by now, of a message that was denied in its turn.
        let wasDenied = (outcomes[event.eventID] ?? []).contains {
            $0.uid == uid && $0.device.isEmpty && $0.isFinal && $0.atNanos < push.atNanos
        }
        if mayRepeat, wasDenied { return true }
        if observed.handedOn.contains(where: { $0.eventID == event.eventID }) { return true }
        if pushes(of: event, to: device(of: push.token, event.app, uid, at: push.atNanos) ?? "", of: uid)
            .contains(where: { $0.status != 200 })
        {
            return true
        }
        if (deliveries[event.eventID] ?? []).contains(where: { $0.uid == uid && $0.wantsAck }) { return true }
        let history = history(event.app, uid)
        return history.mayHaveDesktop(from: event.atNanos, to: push.atNanos)
    }
}
