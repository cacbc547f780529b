// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore
import Recording
import Worker

/// Reads a replayed event as the worker will: its recipients, and whether it is valid.
struct ReplayEvents {
    /// An event for the judge, with the kind that its marks use.
    struct Found {
        var event: ReplayJudge.Event
        var kind: PairKind

        /// The name of a recipient's mark.
        func pair(_ uid: String) -> PairName {
            PairName(app: event.app, uid: uid, kind: kind, id: kind == .liveActivity ? event.id : event.msgID)
        }
    }

    enum Reading {
        case event(Found)
        /// It changes a user's state and has no recipients.
        case userState
        /// The worker writes it to the dead-letter topic.
        case bad
    }

    private let reader: EventReader

    init(_ configuration: Configuration) {
        reader = EventReader(apps: configuration.apps.map(\.policy.id))
    }

    func read(_ value: [UInt8]?, of topic: RecordClass) -> Reading {
        let event: Event
        do throws(BadRecord) {
            event = try reader.read(value ?? [], of: topic)
        } catch {
            return .bad
        }
        switch event.body {
        case .userState: return .userState
        case .liveActivity(let activity):
            let found = ReplayJudge.Event(
                app: event.app, id: event.id, msgID: activity.msgID ?? "",
                recipients: activity.isForAllBound ? nil : activity.uids)
            return .event(Found(event: found, kind: .liveActivity))
        case .message(let shared):
            let message = shared.value
            let named = message.to.uids.map { uids in
                uids.filter { !$0.isSame(as: message.from.uid) && !message.to.excludes($0) }
            }
            let found = ReplayJudge.Event(app: event.app, id: event.id, msgID: message.msgID, recipients: named)
            return .event(Found(event: found, kind: message.kind == .revoke ? .revoke : .message))
        }
    }
}
