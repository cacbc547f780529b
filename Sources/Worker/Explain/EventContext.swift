// SPDX-License-Identifier: Apache-2.0
import PushCore

/// One event with the common data of all its recipients.
struct EventContext {
    let event: Event
    /// The form that the worker uses.
    let job: EventJob
    let app: ExplainedApp
    /// Unix ms.
    let now: Int64
    /// Step 1.
    let first: Explanation.Step

    /// Step 4.
    func isWanted(_ uid: String) -> Bool { job.message?.value.isMeant(for: uid) ?? true }

    /// Step 12 of the record with an empty uid, once all recipients are explained; nil: there is none.
    ///
    /// - Parameter isCut: some recipients were not looked at.
    func nobodyStep(isCut: Bool) -> (reason: Reason, step: Explanation.Step)? {
        let reason: Reason
        let input: String
        if job.audience.hasUnownedTokens {
            (reason, input) = (.noToken, "some token has no owner")
        } else if !job.hasRecipients, !isCut {
            (reason, input) = (.noRecipients, "no recipient is left")
        } else {
            return nil
        }
        return (reason, Explanation.Step(12, "token", input: input, outcome: reason.rawValue, passes: false))
    }

    var title: String {
        switch event.body {
        case .message(let shared):
            "\(shared.value.kind.rawValue) \(shared.value.msgID) in \(shared.value.conversation.type.rawValue) "
                + "\(shared.value.conversation.id) of app \(event.app)"
        case .liveActivity(let activity):
            "live_activity \(activity.action.rawValue) \(activity.activityID) of app \(event.app)"
        case .userState(let state): "\(state.change.kind) of app \(event.app)"
        }
    }
}
