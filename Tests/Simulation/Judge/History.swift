// SPDX-License-Identifier: Apache-2.0
/// What one user's settings, tokens and connections may have been at a time, as clients and gateways wrote them.
///
/// A record counts from the moment at which it was written, at the earliest, and until the next one is surely applied, at
/// the latest. So between the two several values are possible.
struct History {
    /// Records of the user, in the order of their writing.
    let states: [StateSent]
    let moves: [Move]
    /// When gateways removed all connections.
    var movesEndNanos: UInt64 = .max
    /// When Redis lost a key of the user: from then on its connections are uncertain.
    var lostFromNanos: UInt64 = .max
    var leaseLosses: [LeaseLoss] = []
    var leaseDoubts: [LeaseDoubt] = []
    /// Another user bound a token of this one at some time, or APNs refused it.
    var mayLoseTokens = false
    /// How far the clock of a worker may be off.
    var clockSlackNanos: UInt64 = 50_000_000
    /// When each of `states` was applied.
    let applied: [UInt64]
    /// Ignored records change nothing.
    let isIgnored: [Bool]
    /// The user's tokens after each of `states`, where it changed them.
    private(set) var wallets: [Wallet] = []
    /// When workers may still have read a replaced master of Redis.
    var replacedMasters: [ClosedRange<UInt64>] = []
    /// A replica has the writes of its master after this time at most.
    static let replicationNanos: UInt64 = 200_000_000
    /// A worker keeps a lease for a second.
    static let leaseNanos: UInt64 = 1_500_000_000

    /// A token of the user, with what its binds said.
    struct Token: Equatable {
        var hex: String
        var device: String
        var type: StateSent.TokenType
        var boundMs: Int64
        /// The words of this bind and the earlier ones. Further entries: the words where another user had ended an earlier binding
        /// before some of these binds.
        var words: [Words]
        var zone: String?
        var showsAlerts = true
    }

    /// Nil: none, or cleared.
    struct Words: Equatable {
        var language: String?
        var contentKey: String?

        /// - Parameter said: by a bind.
        func merged(_ said: StateSent.BindWords) -> Words {
            Words(
                language: History.merged(said.language, language),
                contentKey: History.merged(said.contentKey, contentKey))
        }
    }

    /// All tokens of the user from one of its records on.
    struct Wallet {
        var index: Int
        var tokens: [Token]
    }

    /// - Parameters:
    ///   - unsure: changes that hold at no known time.
    ///   - void: binds that are older than the stored ones.
    init(states: [StateSent], moves: [Move], observed: Observed, unsure: Set<String> = [], void: Set<String> = []) {
        self.states = states
        self.moves = moves
        applied = states.map { unsure.contains($0.eventID) ? .max : observed.applied($0) }
        isIgnored = states.map {
            void.contains($0.eventID)
                || !unsure.contains($0.eventID) && ["ignored", "stale"].contains(observed.results[$0.eventID]?.outcome)
        }
        fillWallets()
    }

    private mutating func fillWallets() {
        var tokens: [Token] = []
        for (index, state) in states.enumerated() where !isIgnored[index] {
            switch state.kind {
            case .bind(let device, let hex, let type):
                // Other activities have tokens of their own.
                let replaced = type == .activity ? nil : tokens.first { $0.device == device && $0.type == type }
                let former = tokens.first { $0.hex == hex } ?? replaced
                var words: [Words] = []
                for word in ((former?.words ?? []) + [Words()]).map({ $0.merged(state.words) })
                where !words.contains(word) { words.append(word) }
                var token = Token(hex: hex, device: device, type: type, boundMs: state.sentMs, words: words)
                token.zone = Self.merged(state.words.zone, former?.zone)
                token.showsAlerts = state.words.alerts ?? true
                tokens.removeAll { $0.hex == hex || $0.hex == replaced?.hex }
                tokens.append(token)
            case .unbind(_, let hex): tokens.removeAll { $0.hex == hex }
            default: continue
            }
            wallets.append(Wallet(index: index, tokens: tokens))
        }
    }

    /// An empty text clears, none keeps.
    private static func merged(_ text: String?, _ former: String?) -> String? {
        text.map { $0.isEmpty ? nil : $0 } ?? former
    }

    /// All wallets that the user may have had between the two.
    func wallets(from: UInt64, to: UInt64) -> [[Token]] {
        var found: [[Token]] = []
        var (current, sinceNanos): ([Token], UInt64) = ([], 0)
        for wallet in wallets {
            if sinceNanos <= to, applied[wallet.index] >= from { found.append(current) }
            (current, sinceNanos) = (wallet.tokens, states[wallet.index].atNanos)
        }
        if sinceNanos <= to { found.append(current) }
        return found
    }

    /// All values that may have held at some moment between the two, both included.
    func possible<Value: Equatable>(
        from: UInt64, to: UInt64, first: Value, _ next: (Value, StateSent.Kind) -> Value?
    ) -> [Value] {
        var found: [Value] = []
        var (current, sinceNanos): (Value, UInt64) = (first, 0)
        for (index, state) in states.enumerated() where !isIgnored[index] {
            guard let next = next(current, state.kind) else { continue }
            if sinceNanos <= to, applied[index] >= from, !found.contains(current) { found.append(current) }
            (current, sinceNanos) = (next, state.atNanos)
        }
        if sinceNanos <= to, !found.contains(current) { found.append(current) }
        return found
    }

    /// The user's `lang`.
    func languages(from: UInt64, to: UInt64) -> [String?] {
        possible(from: from, to: to, first: String?.none) { _, kind in
            if case .language(let language) = kind { .some(language.isEmpty ? nil : language) } else { nil }
        }
    }

    /// `show_detail`.
    func shows(from: UInt64, to: UInt64) -> [Bool] {
        possible(from: from, to: to, first: true) { _, kind in
            if case .showsDetail(let shows) = kind { shows } else { nil }
        }
    }

    struct DesktopPolicy: Equatable {
        var pushes = true
        var holdSeconds = 0
    }

    func policies(from: UInt64, to: UInt64) -> [DesktopPolicy] {
        possible(from: from, to: to, first: DesktopPolicy()) { _, kind in
            if case .desktopPolicy(let pushes, let hold) = kind {
                DesktopPolicy(pushes: pushes, holdSeconds: hold)
            } else {
                nil
            }
        }
    }

    /// The zone of the token that was bound last; nil in it: none has one.
    ///
    /// - Parameter taken: whether other users may have taken tokens of this one.
    func zones(from: UInt64, to: UInt64, taken: Bool) -> [String?] {
        var found: [String?] = []
        for tokens in wallets(from: from, to: to) {
            let zones = tokens.filter { $0.zone != nil }.sorted { $0.boundMs > $1.boundMs }.map(\.zone)
            let possible = taken ? zones + [nil] : [zones.first ?? nil]
            for zone in possible where !found.contains(zone) { found.append(zone) }
        }
        return found
    }

    // MARK: Connections

    /// A time at which Redis may have had an older lease of the gateway, or none.
    struct LeaseDoubt {
        var gateway: String
        var fromNanos: UInt64
        var toNanos: UInt64
    }

    private func isLeaseSure(_ gateway: String, from: UInt64, to: UInt64) -> Bool {
        !leaseDoubts.contains {
            $0.gateway == gateway && $0.fromNanos <= to && $0.toNanos >= from
        }
    }

    /// A device's connection, and from when to when.
    struct Span {
        var move: Move
        var fromNanos: UInt64
        var toNanos: UInt64
        /// From when all workers see it, and until when one may.
        var seenFromNanos: UInt64
        var seenUntilNanos: UInt64
        /// When the gateway lost its lease.
        var leaseEndNanos: UInt64
        /// Until when a worker may still take the lease for good.
        var leaseGoneNanos: UInt64

        var ackMs: Int64 { move.state == "fg" ? 8000 : 4000 }

        /// Until when the app in the background counts as live.
        private var backgroundEndNanos: UInt64 {
            move.ageNanos > 120_000_000_000 ? fromNanos : fromNanos &+ 120_000_000_000 - move.ageNanos
        }

        /// Until when the device is surely live; nil: it is not.
        func surelyUntil(slack: UInt64) -> UInt64? {
            let end = min(toNanos, leaseEndNanos)
            switch move.state {
            case "fg": return end
            case "bg" where move.hasLocal: return min(end, backgroundEndNanos > slack ? backgroundEndNanos - slack : 0)
            default: return nil
            }
        }

        /// Until when it may be live.
        func perhapsUntil(slack: UInt64) -> UInt64? {
            let end = min(seenUntilNanos, leaseGoneNanos)
            switch move.state {
            case "fg": return end
            case "bg" where move.hasLocal: return min(end, backgroundEndNanos &+ slack)
            default: return nil
            }
        }

        var surelyFromNanos: UInt64 {
            move.isOfNewLease ? max(seenFromNanos, fromNanos &+ History.leaseNanos) : seenFromNanos
        }
    }

    func spans(of device: String) -> [Span] {
        let own = moves.filter { $0.device == device }
        return own.enumerated().map { index, move in
            let loss = leaseLosses.first { $0.gateway == move.gateway && $0.epoch == move.epoch }
            let toNanos = min(movesEndNanos, index + 1 < own.count ? own[index + 1].atNanos : .max)
            return Span(
                move: move, fromNanos: move.atNanos, toNanos: toNanos, seenFromNanos: seenNanos(move.atNanos),
                seenUntilNanos: seenNanos(toNanos), leaseEndNanos: loss?.fromNanos ?? .max,
                leaseGoneNanos: loss.map { $0.toNanos == .max ? .max : $0.toNanos &+ Self.leaseNanos } ?? .max)
        }
    }

    /// The time at which each worker sees what a gateway wrote at the given one.
    private func seenNanos(_ nanos: UInt64) -> UInt64 {
        guard nanos != .max, replacedMasters.contains(where: { $0.contains(nanos) }) else { return nanos }
        return nanos + Self.replicationNanos
    }

    /// The names of all devices that ever had a connection.
    var connected: Set<String> { Set(moves.map(\.device)) }

    func mayBeLive(_ device: String, from: UInt64, to: UInt64) -> Bool {
        to >= lostFromNanos && connected.contains(device)
            || spans(of: device).contains { span in
                guard let until = span.perhapsUntil(slack: clockSlackNanos) else { return false }
                return span.fromNanos <= to && until >= from
            }
    }

    func isLive(_ device: String, from: UInt64, to: UInt64) -> Bool {
        to < lostFromNanos
            && spans(of: device).contains { span in
                guard let until = span.surelyUntil(slack: clockSlackNanos) else { return false }
                return span.surelyFromNanos < from && until > to
                    && isLeaseSure(span.move.gateway, from: from, to: to)
            }
    }

    /// A phone or tablet in the foreground has this conversation open.
    func mayHaveOpen(_ conversation: String, from: UInt64, to: UInt64) -> Bool {
        let open = moves.filter { $0.openConversation == conversation && !$0.isDesktop }
        if to >= lostFromNanos, !open.isEmpty { return true }
        return open.contains { one in
            spans(of: one.device).contains {
                $0.move.openConversation == conversation && $0.fromNanos <= to
                    && $0.perhapsUntil(slack: clockSlackNanos).map { $0 >= from } ?? false
            }
        }
    }

    func hasOpen(_ conversation: String, from: UInt64, to: UInt64) -> Bool {
        guard to < lostFromNanos else { return false }
        return moves.contains { one in
            one.openConversation == conversation && !one.isDesktop
                && spans(of: one.device).contains {
                    $0.move.openConversation == conversation && $0.surelyFromNanos < from
                        && isLeaseSure($0.move.gateway, from: from, to: to)
                        && $0.surelyUntil(slack: clockSlackNanos).map { $0 > to } ?? false
                }
        }
    }

    private var desktops: Set<String> { Set(moves.filter(\.isDesktop).map(\.device)) }

    func mayHaveDesktop(from: UInt64, to: UInt64) -> Bool {
        desktops.contains { mayBeLive($0, from: from, to: to) }
    }

    /// A desktop that is surely live, of those that the message addresses.
    func liveDesktop(from: UInt64, to: UInt64, of devices: [String]) -> String? {
        desktops.sorted().first {
            (devices.isEmpty || devices.contains($0)) && isLive($0, from: from, to: to)
        }
    }

    func isDesktop(_ device: String) -> Bool { desktops.contains(device) }
}
