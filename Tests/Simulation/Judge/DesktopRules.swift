// SPDX-License-Identifier: Apache-2.0
/// The desktop policy: a user's phones wait while a desktop is live, as long as the user wants it.
extension Judge {
    mutating func checkDesktops() {
        for event in sent where event.kind != .activity {
            for uid in event.recipients where desktopUsers.contains("\(event.app) \(uid)") { checkDesktop(event, uid) }
        }
    }

    private mutating func checkDesktop(_ event: Sent, _ uid: String) {
        let history = history(event.app, uid)
        let pushes = (pushesByMessage["\(event.app) \(event.messageID)"] ?? []).filter {
            owner(of: $0.token, appliedBefore: event.atNanos, at: $0.atNanos) == uid
        }
        for push in pushes {
            guard let device = device(of: push.token, event.app, uid, at: push.atNanos), !history.isDesktop(device),
                let why = faultEarly(push, event, history)
            else { continue }
            found("desktops", "\(event.messageID) went to \(uid)'s \(device): \(why)", event.messageID)
        }
        for outcome in outcomes[event.eventID] ?? [] where outcome.uid == uid && outcome.reason == "desktop_online" {
            if let why = faultEnd(outcome, event, history) {
                found("desktops", "\(event.eventID) of \(uid), \(outcome.text): \(why)", event.messageID)
            }
        }
    }

    private func faultEarly(_ push: Observed.Push, _ event: Sent, _ history: History) -> String? {
        let policies = history.policies(from: event.atNanos, to: push.atNanos)
        guard policies.allSatisfy({ !$0.pushes }),
            let desktop = history.liveDesktop(from: event.atNanos, to: push.atNanos, of: event.toDevices)
        else { return nil }
        let waitedMs = clock.ms(push.atNanos) - clock.ms(event.atNanos) + clock.slackMs
        let least = policies.map(\.holdSeconds).min() ?? 0
        // A desktop without its ack is live no more.
        let uid = owner(of: push.token, appliedBefore: event.atNanos, at: push.atNanos)
        let awaited = (deliveries[event.eventID] ?? []).filter { $0.uid == uid && $0.device == desktop && $0.wantsAck }
        let firstMs = awaited.compactMap(\.ackByMs).min()
        let nowMs = clock.ms(push.atNanos) + clock.slackMs
        if least > 0 {
            let isSilent = firstMs.map { $0 <= nowMs } ?? false
            return waitedMs < Int64(least) * 1000 && !isSilent ? "it waited \(waitedMs) ms of \(least) s" : nil
        }
        guard policies == [History.DesktopPolicy(pushes: false, holdSeconds: 0)] else { return nil }
        // Until the desktop's ack is missing, or its own push has failed.
        if strategy(event) == 1 || strategy(event) == 3 {
            guard let firstMs else { return "a desktop is live, and no ack is awaited" }
            if nowMs < firstMs { return "a desktop is live, and its ack is awaited" }
        }
        return nil
    }

    private func faultEnd(_ outcome: Observed.Outcome, _ event: Sent, _ history: History) -> String? {
        if history.isDesktop(outcome.device),
            !history.moves.contains(where: { $0.device == outcome.device && !$0.isDesktop })
        {
            return "it is the desktop"
        }
        let policies = history.policies(from: event.atNanos, to: outcome.atNanos)
        if policies.allSatisfy({ $0.holdSeconds > 0 }) { return "the phones wait for a time" }
        guard !mayRepeat, policies.count == 1 else { return nil }
        let desktops = history.connected.filter {
            history.isDesktop($0) && history.mayBeLive($0, from: event.atNanos, to: outcome.atNanos)
        }
        let isOpen = history.moves.contains { $0.isDesktop && $0.openConversation == event.conversation }
        if event.push.isSilent || isOpen || strategy(event) == 2 { return nil }
        let has = desktops.contains { device in
            let isAcked = history.states.contains {
                if case .ack(device, event.messageID) = $0.kind { $0.atNanos <= outcome.atNanos } else { false }
            }
            return isAcked || pushes(of: event, to: device, of: outcome.uid).contains { $0.status == 200 }
        }
        return has ? nil : "no desktop has it"
    }
}
