// SPDX-License-Identifier: Apache-2.0
/// The fields of outcomes and the ids of pushes: they agree with the requests.
extension Judge {
    mutating func checkRecords() {
        checkPushIDs()
        for outcome in observed.outcomes where outcome.isFinal {
            guard let event = sentByID["\(outcome.app) \(outcome.eventID)"], let why = fault(inRecord: outcome, event)
            else { continue }
            found("the record", "\(event.eventID) of \(outcome.uid), \(outcome.text): \(why)", event.messageID)
        }
    }

    /// One id per user, message and token, whatever the try; and no id has two tokens.
    private mutating func checkPushIDs() {
        var ids: [String: String] = [:]
        var tokensOfIDs: [String: String] = [:]
        for push in observed.pushes {
            if let token = tokensOfIDs[push.pid], token != push.token {
                found("push ids", "\(push.pid) has the tokens …\(token.suffix(4)) and …\(push.token.suffix(4))", "")
            }
            tokensOfIDs[push.pid] = push.token
            // Another user of the token has another id.
            guard let message = push.messageID, Set((tokens[push.token] ?? []).map(\.uid)).count == 1 else { continue }
            let key = "\(push.app) \(push.token) \(message)"
            if let id = ids[key], id != push.pid {
                found("push ids", "\(message) to …\(push.token.suffix(4)) has \(id) and \(push.pid)", message)
            }
            ids[key] = push.pid
        }
    }

    private func fault(inRecord outcome: Observed.Outcome, _ event: Sent) -> String? {
        // Histories made by hand have no such fields.
        guard let message = outcome.messageID else { return nil }
        if event.kind != .activity, message != event.messageID { return "its message is \(message)" }
        if let why = faultLatency(outcome, event) { return why }
        let requests = outcome.pid.isEmpty ? [] : pushes[outcome.pid] ?? []
        switch outcome.verdict {
        case "accepted":
            // A worker that continues the work of another, or of a copy, records a push that was accepted before.
            if outcome.status == nil, outcome.attempts == 0, mayRepeat || event.isDoubled || event.isCopied {
                return nil
            }
            if outcome.status != 200 { return "its status is \(outcome.status ?? -1)" }
            if outcome.apnsID != outcome.pid { return "its apns_id is \(outcome.apnsID ?? "none")" }
            let accepted = requests.filter { $0.status == 200 }
            if event.kind != .activity, !event.push.isSilent, !event.push.isVoip, !accepted.isEmpty,
                !accepted.contains(where: { $0.badge == outcome.badge })
            {
                return "its badge is \(outcome.badge ?? -1), and that of the push \(accepted[0].badge ?? -1)"
            }
            if outcome.credential == nil { return "it names no credential" }
        case "rejected":
            if ["Unanswered", "Unprocessed", "Unfit"].contains(outcome.reason) { return nil }
            if !requests.contains(where: { $0.status.map(Int64.init) == outcome.status && $0.reason == outcome.reason })
            {
                return "APNs did not say so"
            }
        default: if outcome.status != nil { return "it has a status" }
        }
        return nil
    }

    /// From the event's Kafka time to the outcome, whatever it waited for.
    private func faultLatency(_ outcome: Observed.Outcome, _ event: Sent) -> String? {
        guard allowance.isCalm, !allowance.hasOddTimes, !event.isDoubled, let latency = outcome.latencyMs else {
            return nil
        }
        let took = Int64(clamping: (outcome.atNanos - min(event.atNanos, outcome.atNanos)) / 1_000_000)
        return latency + Self.recordMs < took ? "its latency is \(latency) ms of \(took)" : nil
    }

    /// A record waits so long for others, at most, before it is written.
    private static let recordMs: Int64 = 2_000
}
