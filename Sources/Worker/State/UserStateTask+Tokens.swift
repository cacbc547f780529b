// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore
import Redis

/// The steps of bind and unbind (`StateScripts+Tokens`).
extension UserStateTask {
    /// An account switch: a token moves to another user, and with it the phone.
    struct Switch: Sendable, Equatable {
        /// The bind's time.
        var atMs: Int64
        /// The device (`TokenText.deviceWord`), if it is known; else it is the one under which the user has the token.
        var device = ""
        /// Other tokens of the phone. Their owner entries know that they end.
        var ended: [EndedToken] = []
    }

    /// A token that ends with an account switch, as it was bound.
    struct EndedToken: Sendable, Equatable {
        var uid: String
        var token: String
        var version: Int64
    }

    /// The users who lose a token, one after the other.
    struct Taking: Sendable, Equatable {
        /// The first one is in hand.
        var users: [String]
        var switched: Switch
        var then: Then

        enum Then: Sendable, Equatable {
            case add
            /// The user's own copy goes too; then the outcome is final.
            case dropOwn(StateOutcome)
            /// The user lost the token to another one at this time.
            case loseOwn(atMs: Int64)
            case done(StateOutcome)
        }
    }

    mutating func sendBind(_ binding: UserState.Binding, _ store: StateStore, _ tag: UInt64) throws(RedisFault) {
        let token = binding.token.hex
        switch step {
        case .start:
            try store.bindOwner(app, state.uid, binding, tag)
        case .take(let taking):
            // A previous owner's later bind with a higher version remains.
            try store.dropToken(
                app: app, uid: taking.users.first ?? state.uid, token: token, upTo: binding.version, nowMs: nowMs,
                switched: taking.switched, tag: tag)
        case .endTokens(let taking, let tokens):
            due = tokens.count
            for ended in tokens {
                try store.retireOwner(
                    app: app, uid: ended.uid, token: ended.token, version: ended.version,
                    .switched(atMs: taking.switched.atMs), tag: tag)
            }
        case .add:
            try store.addToken(app, state.uid, binding, nowMs: nowMs, tag)
        case .retireReplaced(let replaced, let version, _):
            try store.retireOwner(app: app, uid: state.uid, token: replaced, version: version, .replaced, tag: tag)
        case .endOwn(let atMs):
            try store.retireOwner(
                app: app, uid: state.uid, token: token, version: binding.version, .switched(atMs: atMs), tag: tag)
        case .settle:
            try store.settleOwner(app, state.uid, token, binding.version, tag)
        case .list:
            try store.listActivityUser(app, state.uid, activityID: binding.boundActivity ?? "", tag)
        case .dropOwn, .record, .mark, .groupMark:
            let field = binding.boundActivity == nil ? "" : TokenText.field(device: binding.device, binding.token)
            try store.dropToken(
                app: app, uid: state.uid, token: token, upTo: binding.version, nowMs: nowMs, repeated: field, tag: tag)
        }
    }

    func sendUnbind(_ unbinding: UserState.Unbinding, _ store: StateStore, _ tag: UInt64) throws(RedisFault) {
        if case .dropOwn = step {
            try store.dropToken(
                app: app, uid: state.uid, token: unbinding.token, upTo: unbinding.version, nowMs: nowMs, tag: tag)
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

    /// Owner first, then the previous owners, then the new one, then a check that the token still belongs to the user.
    mutating func nextOfBind(_ binding: UserState.Binding, _ answer: StepAnswer) -> Next {
        switch step {
        case .start:
            switch answer.code {
            case 0: return take(from: [], binding, then: lost(answer))
            case 1: return take(from: answer.texts, binding, then: .add)
            case 2: return take(from: answer.texts, binding, then: .dropOwn(.ignored(.unbound)))
            default: return .done(.ignored(.unusable))
            }
        case .take(let taking): return taken(taking, answer, binding)
        case .endTokens(var taking, let tokens):
            taking.switched.ended += tokens
            return .step(.take(taking))
        case .add:
            switch answer.code {
            case 0: return .step(.dropOwn(.ignored(.stale)))
            case 1, 2:
                let isRepeat = answer.code == 2
                guard answer.texts.count == 2, let version = StateKeys.version(of: answer.texts[1]) else {
                    return .step(.settle(repeated: isRepeat))
                }
                return .step(.retireReplaced(token: answer.texts[0], version: version, repeated: isRepeat))
            case 3: return .step(.endOwn(atMs: answer.texts.first.flatMap { Int64($0) } ?? 0))
            default: return .done(.ignored(.unusable))
            }
        case .endOwn: return .step(.dropOwn(.ignored(.unbound)))
        case .retireReplaced(_, _, let repeated): return .step(.settle(repeated: repeated))
        case .settle(let repeated):
            // Another bind took the token: removes this user's copy again.
            guard answer.code == 1 else { return next(lost(answer), binding) }
            let outcome: StateOutcome = repeated ? .repeated : .applied(.none)
            return binding.boundActivity == nil ? .done(outcome) : .step(.list(outcome))
        // The field has the same activity token by a newer bind.
        case .dropOwn(.ignored(.stale)) where answer.code == -1: return .done(.repeated)
        case .dropOwn(let outcome), .list(let outcome): return .done(outcome)
        case .record, .mark, .groupMark: return .done(.ignored(.unusable))
        }
    }

    /// A newer bind has the token: of another user, if the answer has its time.
    private func lost(_ answer: StepAnswer) -> Taking.Then {
        guard let atMs = answer.texts.first.flatMap({ Int64($0) }) else { return .dropOwn(.ignored(.stale)) }
        return .loseOwn(atMs: atMs)
    }

    /// Also from the users that the same bind took it from before, if it is made once more.
    private mutating func take(from former: [String], _ binding: UserState.Binding, then: Taking.Then) -> Next {
        let again = formerOwners.filter { !former.containsSame($0) }
        formerOwners = former + again
        let taking = Taking(users: formerOwners, switched: Switch(atMs: binding.token.boundMs), then: then)
        if formerOwners.isEmpty { return next(then, binding) }
        return .step(endedTokens.isEmpty ? .take(taking) : .endTokens(taking, endedTokens))
    }

    private mutating func taken(_ taking: Taking, _ answer: StepAnswer, _ binding: UserState.Binding) -> Next {
        let uid = taking.users.first ?? state.uid
        let ended = stride(from: 0, to: answer.texts.count - 1, by: 2).compactMap { place in
            StateKeys.version(of: answer.texts[place + 1]).map {
                EndedToken(uid: uid, token: answer.texts[place], version: $0)
            }
        }
        if !ended.isEmpty {
            if case .done = taking.then {} else { endedTokens += ended }
            return .step(.endTokens(taking, ended))
        }
        var taking = taking
        taking.users.removeFirst(min(1, taking.users.count))
        taking.switched.ended = []
        return taking.users.isEmpty ? next(taking.then, binding) : .step(.take(taking))
    }

    private func next(_ then: Taking.Then, _ binding: UserState.Binding) -> Next {
        switch then {
        case .add: .step(.add)
        case .dropOwn(let outcome): .step(.dropOwn(outcome))
        case .loseOwn(let atMs):
            .step(
                .take(
                    Taking(
                        users: [state.uid],
                        switched: Switch(atMs: atMs, device: TokenText.deviceWord(binding.device)),
                        then: .done(.ignored(.stale)))))
        case .done(let outcome): .done(outcome)
        }
    }
}

extension UserState.Binding {
    /// The Live Activity of an update token; nil for another type, or if it names none.
    var boundActivity: String? {
        guard token.type == .activity, let id = token.activityID, !id.isEmpty else { return nil }
        return id
    }
}
