// SPDX-License-Identifier: Apache-2.0
/// Deliveries over long connections.
extension Judge {
    mutating func checkDeliveries() {
        for (eventID, targets) in deliveries.sorted(by: { $0.key < $1.key }) {
            guard let event = targets.first.flatMap({ target in sentByID["\(target.app) \(eventID)"] }) else {
                continue
            }
            let original = event.record.isEmpty ? nil : JudgeJSON(Array(event.record.utf8))
            for target in targets {
                if let original, let copy = target.event, copy != original {
                    found(
                        "deliveries", "\(event.messageID) is another event in \(target.gateway)'s record",
                        event.messageID)
                }
                if let why = fault(in: target, of: event) {
                    found(
                        "deliveries", "\(event.messageID) to \(target.uid)'s \(target.device): \(why)", event.messageID)
                }
            }
        }
        // After a crash the record of the outcome alone may be left.
        guard !mayRepeat else { return }
        for event in sent where event.kind != .activity { checkMissing(event) }
    }

    private func fault(in target: Observed.Delivery, of event: Sent) -> String? {
        if !event.recipients.contains(target.uid) { return "the user is no recipient" }
        if event.kind == .activity { return "an activity has none" }
        if strategy(event) == 2 { return "the strategy is APNs only" }
        let history = history(event.app, target.uid)
        if !history.mayBeLive(target.device, from: event.atNanos, to: target.atNanos) {
            return "the device is not live"
        }
        if target.wantsAck, !target.alerts || target.isPushed { return "it wants an ack without an alert" }
        guard target.alerts else { return nil }
        if event.push.isSilent { return "a silent message alerts" }
        let steps = steps(event, target.uid, until: target.atNanos)
        if let certain = steps.certain { return "the alert is denied by \(certain.reason)" }
        return nil
    }

    /// Each device that was live all the time has the event.
    private mutating func checkMissing(_ event: Sent) {
        let strategy = strategy(event)
        guard strategy == 1 || strategy == 3, !event.push.isVoip else { return }
        for uid in event.recipients {
            guard let last = (outcomes[event.eventID] ?? []).filter({ $0.uid == uid }).map(\.atNanos).max() else {
                continue
            }
            let history = history(event.app, uid)
            guard steps(event, uid, until: last).expired == .never else { continue }
            for device in history.connected.sorted()
            where history.isLive(device, from: event.atNanos, to: last)
                && (event.toDevices.isEmpty || event.toDevices.contains(device))
            {
                let has = (deliveries[event.eventID] ?? []).contains { $0.uid == uid && $0.device == device }
                if !has {
                    found("deliveries", "\(event.messageID) has none to \(uid)'s live \(device)", event.messageID)
                }
            }
        }
    }
}
