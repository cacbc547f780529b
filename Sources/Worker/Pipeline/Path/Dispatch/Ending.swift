// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore

/// The reason in `push.results` if APNs gave none, in the style of Apple's reasons.
enum NoAnswer: String, CaseIterable {
    /// APNs certainly never processed it, and no further attempt was allowed.
    case unprocessed = "Unprocessed"
    /// Sent as often as allowed, without an answer: it may have arrived.
    case unanswered = "Unanswered"
    /// Not sent: APNs would have refused a header or the kind of credential.
    case unfit = "Unfit"
}

/// APNs' outcome in the words of `push.results`.
struct Ending {
    var verdict: Verdict
    var reason: String
    /// The reason as a metric's label, from a closed set.
    var label: String
    var status: Int?
    var apnsID: PushID?
    var timestampMs: Int64?
    /// The cause of the token's removal; nil if it stays.
    var removal: RemovalBrake.Cause?

    init(_ outcome: PushOutcome, token: BoundToken, isForced: Bool) {
        switch outcome {
        case .accepted(let id):
            self.init(.accepted, (isForced ? Reason.forced : .ok).rawValue)
            status = 200
            apnsID = id
        case .rejected(let status, let reason, let time):
            self.init(.rejected, reason.text, label: reason.label)
            self.status = status
            timestampMs = time.milliseconds
            switch outcome.tokenFate {
            case .keep: break
            case .remove: removal = reason.text == "DeviceTokenNotForTopic" ? .notForTopic : .badDeviceToken
            case .removeIfOlder:
                // A time that cannot be read proves nothing.
                removal = time != .unreadable && token.record.isDead(sinceMs: timestampMs) ? .gone : nil
            }
        case .expired:
            self.init(.expired, Reason.expired.rawValue)
        case .deferred(let status, let reason, _):
            self.init(.rejected, reason.text, label: reason.label)
            self.status = status
        case .superseded:
            self.init(.suppressed, Reason.coalesced.rawValue)
        case .unprocessed:
            self.init(.rejected, NoAnswer.unprocessed.rawValue)
        case .unknown(_, let id):
            // Tried as often as allowed, with the same apns-id: it may have arrived.
            self.init(.rejected, NoAnswer.unanswered.rawValue)
            apnsID = id
        }
    }

    private init(_ verdict: Verdict, _ reason: String, label: String? = nil) {
        self.verdict = verdict
        self.reason = reason
        self.label = label ?? reason
    }
}
