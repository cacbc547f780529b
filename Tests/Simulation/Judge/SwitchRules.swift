// SPDX-License-Identifier: Apache-2.0
/// Account switches without an unbind. A token moves to another user. Then all tokens end that the former user bound on that phone.
extension Judge {
    /// A token that ended with another one of its phone.
    struct Ended: Equatable {
        var token: String
        var uid: String
        /// When the bind that ended it was written, and when it was applied.
        var writtenNanos: UInt64
        var appliedNanos: UInt64
    }

    mutating func checkSwitches() {
        // Redis may have lost either bind.
        guard allowance.losses.isEmpty else { return }
        let pushes = Dictionary(grouping: observed.pushes, by: \.token)
        for ended in ended {
            for push in pushes[ended.token] ?? [] where push.atNanos > ended.appliedNanos {
                let isLate = push.atNanos > ended.appliedNanos &+ slackNanos
                guard isLate || event(of: push).map({ $0.atNanos > ended.appliedNanos }) ?? false else { continue }
                // The user has bound the token again.
                let isNew = (tokens[ended.token] ?? []).contains {
                    $0.atNanos >= ended.writtenNanos && $0.atNanos <= push.atNanos
                }
                if isNew { break }
                found(
                    "no push after an account switch",
                    "\(push.messageID ?? "a push") went to …\(push.token.suffix(4)), which \(ended.uid) had on a phone "
                        + "that another user has", push.messageID ?? "")
            }
        }
    }

    /// By the order of tokens and binds.
    private var ended: [Ended] {
        var ended: [Ended] = []
        for (hex, changes) in tokens.sorted(by: { $0.key < $1.key }) where !unsureTokens.contains(hex) {
            guard !isRefused(hex) else { continue }
            for (former, bind) in zip(changes, changes.dropFirst()) where former.uid != bind.uid {
                guard case .bind(let device, _, _) = former.kind, bind.tokenType != nil,
                    observed.results[bind.eventID]?.outcome == "applied", observed.applied(former) < bind.atNanos
                else { continue }
                let applied = observed.applied(bind)
                let wallets = history(former.app, former.uid).wallets(from: bind.atNanos, to: applied)
                // The former user had the token on that phone, whichever bind held.
                guard
                    wallets.allSatisfy({ $0.contains { $0.hex == hex && $0.device == device } }),
                    let wallet = wallets.first
                else { continue }
                for token in wallet where token.hex != hex && token.device == device {
                    // A token that the user bound later than this stays.
                    let owner = (tokens[token.hex] ?? []).last { $0.atNanos < bind.atNanos }?.uid
                    guard owner == former.uid, wallets.allSatisfy({ $0.contains(token) }),
                        !unsureTokens.contains(token.hex),
                        token.boundMs + clock.slackMs + 100 < bind.sentMs
                    else { continue }
                    ended.append(
                        Ended(
                            token: token.hex, uid: former.uid, writtenNanos: bind.atNanos, appliedNanos: applied))
                }
            }
        }
        return ended
    }
}
