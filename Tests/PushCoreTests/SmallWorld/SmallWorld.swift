// SPDX-License-Identifier: Apache-2.0
import PushCore

/// The facts of one case of the exhaustive check, each from a small domain, told in the contract's own words.
///
/// `inputs` makes of them what `decide` reads; `NaiveRules` reads the facts themselves.
struct SmallWorld {
    // Of the alert (contract section 5, steps 6-10).
    var type = Conversation.Kind.group
    var userMute = UserMute.none
    var groupLevel = 0
    /// The user's own for the type, `settings.levels`.
    var typeLevel = 0
    var appLevel = 0
    var mentionsMe = false
    var mentionsAll = false
    var force = Force.none
    var window = Window.none
    var isChain = false
    var forceOverrides = false
    var veto = Veto.none
    var staleness = Staleness.none
    var badge = Badge.wanted

    // Of the ways (step 11).
    var strategy = 1
    var only = Only.all
    var isVoip = false
    var isSilent = false
    var phone = Presence.none
    var phoneToken = Token.none
    var pad = Presence.none
    var padToken = Token.none
    var desktop = Presence.none
    var desktopToken = Token.none
    var pushWhenDesktopOnline = true
    var holdSeconds = 0

    enum UserMute: CaseIterable {
        case none, all, mentions, mentionsOfMe, mentionsOfAll, blocked, blockedButOver
    }
    enum Force: CaseIterable { case none, me, others, nobody, all }
    enum Window: CaseIterable { case none, notNow, level1, level5, snooze, level1AndSnooze, snoozeIsOver }
    enum Veto: CaseIterable { case none, pushOff, customWithoutContent, customWithContent }
    enum Staleness: CaseIterable { case none, read, revoked, expired }
    enum Badge: CaseIterable { case wanted, unwanted, revokeDecreases, revokeCounts }
    enum Presence: CaseIterable {
        case none, off, foreground, conversationOpen, justLeft, leftLongAgo, cannotAlert, suspect
    }
    /// The message goes to one device only.
    enum Only: String, CaseIterable { case all, phone, pad, desk, phoneByToken }
    /// `alertOff`: of a device that shows no alerts.
    enum Token: CaseIterable { case none, alert, voip, activity, alertOff }

    static let now: Int64 = 1_700_049_600_000

    struct Inputs {
        var message: Message
        var recipient: Recipient
        var policy: AppPolicy

        func decide() -> Decision {
            PushCore.decide(
                message, sentMs: SmallWorld.now - 1000, for: recipient, policy: policy, zones: TestZones(),
                now: SmallWorld.now)
        }
    }

    var inputs: Inputs {
        var policy = AppPolicy(id: "im", topic: "t")
        policy.defaultZone = "UTC"
        policy.dndMode = isChain ? .chain : .independent
        policy.forceOverridesDND = forceOverrides
        policy.defaultLevels[type] = MuteLevel(rawValue: appLevel)
        // Half of the strategies come from the app, so that both ways in are seen.
        if strategy.isMultiple(of: 2) { policy.strategy = Strategy(rawValue: strategy) ?? policy.strategy }
        return Inputs(message: message, recipient: recipient, policy: policy)
    }

    private var message: Message {
        var push = PushOptions()
        push.enabled = veto != .pushOff
        push.content = veto == .customWithoutContent ? nil : "hello"
        push.badge = badge != .unwanted
        push.voip = isVoip
        push.silent = isSilent
        if !strategy.isMultiple(of: 2) { push.strategy = Strategy(rawValue: strategy) }
        switch force {
        case .none: break
        case .me: push.force = .init(mode: .list, uids: ["x", "me"])
        case .others: push.force = .init(mode: .list, uids: ["x", "y"])
        case .nobody: push.force = .init(mode: .list)
        case .all: push.force = .init(mode: .all)
        }
        let isRevoke = badge == .revokeDecreases || badge == .revokeCounts
        return Message(
            kind: isRevoke ? .revoke : .message, msgID: "m", serverSeq: 10,
            expireAtMs: staleness == .expired ? Self.now : Self.now + 1,
            conversation: .init(id: "c", type: type), from: .init(uid: "you"), to: .init(uids: ["me"], limit: limit),
            mention: mentionsMe || mentionsAll ? .init(all: mentionsAll, uids: mentionsMe ? ["z", "me"] : ["z"]) : nil,
            isCustomType: veto == .customWithContent || veto == .customWithoutContent, push: push,
            revoke: isRevoke ? .init(targetMsgID: "t", badge: badge == .revokeCounts ? .count : .decrease) : nil)
    }

    private var limit: DeviceLimit? {
        switch only {
        case .all: nil
        case .phone, .pad, .desk: DeviceLimit(devices: ["watch", only.rawValue])
        case .phoneByToken: DeviceLimit(tokens: ["phone's"])
        }
    }

    private var recipient: Recipient {
        var recipient = Recipient(uid: "me")
        switch userMute {
        case .none: break
        case .all: recipient.mute = .init(level: .all)
        case .mentions: recipient.mute = .init(level: .mentions)
        case .mentionsOfMe: recipient.mute = .init(level: .mentionsOfMe, untilMs: Self.now + 1)
        case .mentionsOfAll: recipient.mute = .init(level: .mentionsOfAll)
        case .blocked: recipient.mute = .init(level: .blocked)
        case .blockedButOver: recipient.mute = .init(level: .blocked, untilMs: Self.now)
        }
        recipient.groupLevel = groupLevel == 0 ? nil : MuteLevel(rawValue: groupLevel)
        recipient.settings.levels[type] = typeLevel == 0 ? nil : MuteLevel(rawValue: typeLevel)
        recipient.isRevoked = staleness == .revoked
        recipient.read = staleness == .read ? .init(seq: 10) : .init(seq: 9)
        // 12:00 UTC.
        switch window {
        case .none: break
        case .notNow: recipient.settings.dnd = .init(on: true, start: 721, end: 720)
        case .level1, .level1AndSnooze: recipient.settings.dnd = .init(on: true, start: 720, end: 721, level: 1)
        case .level5: recipient.settings.dnd = .init(on: true, start: 719, end: 0, level: 5)
        case .snooze, .snoozeIsOver: break
        }
        switch window {
        case .snooze, .level1AndSnooze: recipient.settings.snoozeUntilMs = Self.now + 1
        case .snoozeIsOver: recipient.settings.snoozeUntilMs = Self.now
        case .none, .notNow, .level1, .level5: break
        }
        recipient.settings.pushWhenDesktopOnline = pushWhenDesktopOnline
        recipient.settings.holdSeconds = Int16(holdSeconds)
        add("phone", .ios, phone, phoneToken, to: &recipient)
        add("pad", .ipad, pad, padToken, to: &recipient)
        add("desk", .mac, desktop, desktopToken, to: &recipient)
        return recipient
    }

    private func add(
        _ device: String, _ platform: DevicePresence.Platform, _ presence: Presence, _ token: Token,
        to recipient: inout Recipient
    ) {
        if let type = token == .alertOff ? .alert : TokenRecord.Kind(rawValue: "\(token)") {
            let record = TokenRecord(
                hex: device + "'s", environment: .production, topic: "t", type: type, boundMs: 1,
                showsAlerts: token != .alertOff)
            recipient.tokens.append(BoundToken(device: device, record: record, version: 1))
        }
        if presence == .none { return }
        var entry = DevicePresence(
            device: device, state: .foreground, platform: platform, gateway: "g", gatewayEpoch: 1, connectionEpoch: 1,
            lastMs: Self.now)
        switch presence {
        case .none, .foreground: break
        case .off: entry.state = .off
        case .conversationOpen: entry.activeConversation = "c"
        case .justLeft, .leftLongAgo, .cannotAlert:
            entry.state = .background
            entry.raisesLocalAlert = presence != .cannotAlert
            entry.backgroundSinceMs = presence == .leftLongAgo ? Self.now - 120_000 : Self.now - 119_999
        case .suspect: entry.isSuspect = true
        }
        recipient.presence.append(entry)
    }
}
