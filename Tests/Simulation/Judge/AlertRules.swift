// SPDX-License-Identifier: Apache-2.0
/// One alert per device and message, over both ways.
extension Judge {
    /// APNs' ledger is read so often. A commit lets the topics be read in between.
    private static let lookNanos: UInt64 = 10_000_000

    mutating func checkAlerts() {
        for delivery in observed.deliveries {
            guard let event = sentByID["\(delivery.app) \(delivery.eventID)"], event.kind != .activity else { continue }
            let before = pushes(of: event, to: delivery.device, of: delivery.uid).filter {
                $0.atNanos <= delivery.atNanos &+ Self.lookNanos && $0.status == 200
            }
            let name = "\(event.messageID) to \(delivery.uid)'s \(delivery.device)"
            if delivery.isPushed {
                if delivery.alerts { found("one alert", "\(name): it was pushed, and alerts", event.messageID) }
                if before.isEmpty, !mayBeSeveral(event) {
                    found("one alert", "\(name): pushed is said, and APNs accepted none", event.messageID)
                }
                if let pid = delivery.pid, !before.contains(where: { $0.pid == pid }), !before.isEmpty {
                    found("one alert", "\(name): its pid is of no push of it", event.messageID)
                }
            } else if delivery.alerts, !mayRepeat, !event.isDoubled,
                before.contains(where: { $0.type == "alert" && $0.atNanos < delivery.atNanos }),
                !allowance.mayWait
            {
                found("one alert", "\(name): it alerts after a push", event.messageID)
            }
        }
        checkCopies()
    }

    /// Strategy 4: a live device that was pushed gets a copy.
    private mutating func checkCopies() {
        guard !mayRepeat else { return }
        for event in sent where event.kind != .activity && strategy(event) == 4 && !event.push.isVoip {
            for outcome in outcomes[event.eventID] ?? [] where outcome.verdict == "accepted" {
                let history = history(event.app, outcome.uid)
                guard history.isLive(outcome.device, from: event.atNanos, to: outcome.atNanos &+ 1_000_000_000) else {
                    continue
                }
                let has = (deliveries[event.eventID] ?? []).contains {
                    $0.uid == outcome.uid && $0.device == outcome.device
                }
                if !has {
                    found(
                        "one alert", "\(event.messageID) has no copy to \(outcome.uid)'s live \(outcome.device)",
                        event.messageID)
                }
            }
        }
    }
}
