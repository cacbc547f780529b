// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// The steps of bind and unbind (`StateScripts+Tokens`).
extension UserStateTask {
    func sendBind(_ binding: UserState.Binding, _ store: StateStore, _ tag: UInt64) throws(RedisFault) {
        let token = binding.token.hex
        switch step {
        case .start:
            try store.bindOwner(app, state.uid, token, binding.version, tag)
        case .dropFormer(let former, _):
            // A previous owner's later bind with a higher version remains.
            try store.dropToken(
                app: app, uid: former.first ?? state.uid, token: token, upTo: binding.version, boundMs: nil,
                nowMs: nowMs,
                tag: tag)
        case .add:
            try store.addToken(app, state.uid, binding, nowMs: nowMs, tag)
        case .retireReplaced(let replaced, let version, _):
            try store.retireOwner(app: app, uid: state.uid, token: replaced, version: version, tag: tag)
        case .settle:
            try store.settleOwner(app, state.uid, token, binding.version, tag)
        case .list:
            try store.listActivityUser(app, state.uid, activityID: binding.boundActivity ?? "", tag)
        case .dropOwn, .record, .mark, .groupMark:
            try store.dropToken(
                app: app, uid: state.uid, token: token, upTo: binding.version, boundMs: nil, nowMs: nowMs,
                tag: tag)
        }
    }

    func sendUnbind(_ unbinding: UserState.Unbinding, _ store: StateStore, _ tag: UInt64) throws(RedisFault) {
        if case .dropOwn = step {
            try store.dropToken(
                app: app, uid: state.uid, token: unbinding.token, upTo: unbinding.version, boundMs: nil,
                nowMs: nowMs, tag: tag)
        } else {
            try store.unbindOwner(app, state.uid, unbinding.token, unbinding.version, tag)
        }
    }

    static func nextOfUnbind(after step: Step, _ answer: StepAnswer) -> Next {
        if case .dropOwn(let outcome) = step { return .done(outcome) }
        switch answer.code {
        case 1: return .step(.dropOwn(.applied(.none)))
        // Another owner or a newer version is stored. An unbind that this interrupted may have left this user's copy.
        case 0: return .step(.dropOwn(.ignored(.notOwner)))
        case 2: return .done(.ignored(.early))
        default: return .done(.ignored(.unusable))
        }
    }
}

extension UserState.Binding {
    /// Owner first, then the previous owners, then the new one, then a check that the token still belongs to the user.
    func next(after step: UserStateTask.Step, _ answer: StepAnswer) -> UserStateTask.Next {
        switch step {
        case .start:
            switch answer.code {
            case 0: return .step(.dropOwn(.ignored(.stale)))
            case 1, 2: return afterFormer(answer.texts, adds: answer.code == 1)
            default: return .done(.ignored(.unusable))
            }
        case .dropFormer(let former, let adds): return afterFormer(Array(former.dropFirst()), adds: adds)
        case .add:
            switch answer.code {
            case 0: return .step(.dropOwn(.ignored(.stale)))
            case 1:
                guard answer.texts.count == 2, let version = StateKeys.version(of: answer.texts[1]) else {
                    return .step(.settle(repeated: false))
                }
                return .step(.retireReplaced(token: answer.texts[0], version: version, repeated: false))
            case 2: return .step(.settle(repeated: true))
            default: return .done(.ignored(.unusable))
            }
        case .retireReplaced(_, _, let repeated): return .step(.settle(repeated: repeated))
        case .settle(let repeated):
            // Another bind took the token: removes this user's copy again.
            guard answer.code == 1 else { return .step(.dropOwn(.ignored(.stale))) }
            let outcome: StateOutcome = repeated ? .repeated : .applied(.none)
            return boundActivity == nil ? .done(outcome) : .step(.list(outcome))
        case .dropOwn(let outcome), .list(let outcome): return .done(outcome)
        case .record, .mark, .groupMark: return .done(.ignored(.unusable))
        }
    }

    /// The Live Activity of an update token; nil for another type, or if it names none.
    var boundActivity: String? {
        guard token.type == .activity, let id = token.activityID, !id.isEmpty else { return nil }
        return id
    }

    private func afterFormer(_ former: [String], adds: Bool) -> UserStateTask.Next {
        if !former.isEmpty { return .step(.dropFormer(former, adds: adds)) }
        return .step(adds ? .add : .dropOwn(.ignored(.unbound)))
    }
}
