// SPDX-License-Identifier: Apache-2.0
import PushCore

/// The rules of contract section 5 once more, as plainly as they can be said: nothing here is shared with `decide`, no
/// case is folded into another, and speed does not matter.
struct NaiveRules {
    let world: SmallWorld

    // MARK: - Who is who

    var isForced: Bool { world.force == .me || world.force == .all }
    var isMentioned: Bool { world.mentionsMe || world.mentionsAll }
    var isGroup: Bool { world.type == .group || world.type == .ultra }

    // MARK: - Steps 2 and 6 to 9: the first deny is the verdict

    var verdict: String {
        if world.staleness == .expired { return "expired" }
        if world.staleness == .read { return "already_read" }
        if world.staleness == .revoked { return "revoked" }
        if isVetoed { return "msg_push_off" }
        if isInWindow && world.isChain {
            // The window stands above every level and decides alone.
            if !comesThroughWindow { return "dnd" }
        } else {
            if isMuted && !isForced { return "conv_muted" }
            if isInWindow && !comesThroughWindow { return "dnd" }
        }
        return isForced ? "forced" : "allow"
    }

    var isVetoed: Bool {
        switch world.veto {
        case .pushOff, .customWithoutContent: true
        case .none, .customWithContent: false
        }
    }

    /// The user's level, else the group's, else the user's for the type, else the app's; 0 and a mute that is over look further.
    var level: Int {
        let own =
            switch world.userMute {
            case .none, .blockedButOver: 0
            case .all: -1
            case .mentions: 1
            case .mentionsOfMe: 2
            case .mentionsOfAll: 4
            case .blocked: 5
            }
        if own != 0 { return own }
        if isGroup && world.groupLevel != 0 { return world.groupLevel }
        if world.typeLevel != 0 { return world.typeLevel }
        return world.appLevel
    }

    var isMuted: Bool {
        if level == -1 || level == 0 { return false }
        if level == 5 { return true }
        // In p2p 1, 2 and 4 are as 5.
        if world.type == .p2p { return true }
        if level == 1 { return !isMentioned }
        if level == 2 { return !world.mentionsMe }
        return !world.mentionsAll
    }

    /// A snooze is as a window of level 5.
    var isSnoozed: Bool { world.window == .snooze || world.window == .level1AndSnooze }

    var isInWindow: Bool { world.window == .level1 || world.window == .level5 || isSnoozed }

    var comesThroughWindow: Bool {
        if world.window == .level1 && isGroup && isMentioned { return true }
        return isForced && world.forceOverrides
    }

    // MARK: - Step 10

    /// Counted and let through, or held by DND only; read and revoked messages are the store's to leave out.
    var counts: Bool {
        if world.staleness == .expired { return false }
        if world.badge == .unwanted || world.badge == .revokeDecreases { return false }
        if isVetoed { return false }
        if world.phone == .conversationOpen || world.pad == .conversationOpen { return false }
        if !isMuted || isForced { return true }
        // Muted and not forced: only a strict chain's window can have let it through.
        return isInWindow && world.isChain && comesThroughWindow
    }

    // MARK: - Step 11: the way to each device

    func isLive(_ presence: SmallWorld.Presence) -> Bool {
        presence == .foreground || presence == .conversationOpen || presence == .justLeft
    }

    var isAllowed: Bool { verdict == "allow" || verdict == "forced" }

    var ways: [String: String] {
        if world.staleness == .expired { return [:] }
        var ways: [String: String] = [:]
        // As if the user had the named device only.
        if goes(to: .phone) { ways["phone"] = way(world.phone, world.phoneToken, isDesktop: false) }
        if goes(to: .pad) { ways["pad"] = way(world.pad, world.padToken, isDesktop: false) }
        if goes(to: .desk) { ways["desk"] = way(world.desktop, world.desktopToken, isDesktop: true) }
        return ways
    }

    func goes(to device: SmallWorld.Only) -> Bool {
        if world.only == .all || world.only == device { return true }
        // A token names its device, if it is still the user's.
        return world.only == .phoneByToken && device == .phone && world.phoneToken != .none
    }

    func way(_ presence: SmallWorld.Presence, _ token: SmallWorld.Token, isDesktop: Bool) -> String? {
        let hasToken = world.isVoip ? token == .voip : token == .alert || token == .alertOff
        // No alert is pushed to a device that shows none; other pushes are.
        let isOff = token == .alertOff && !world.isSilent
        let isLive = isLive(presence)
        let delivery = delivery(to: presence)
        if !isAllowed {
            // The alert is withheld, the message is not.
            return isLive && world.strategy != 2 ? delivery : nil
        }
        let waits = !isDesktop && !world.pushWhenDesktopOnline && goes(to: .desk) && self.isLive(world.desktop)
        switch world.strategy {
        case 1:
            if isLive { return delivery }
            if !hasToken { return nil }
            if isOff { return "alerts_off" }
            return waits ? waiting : "apns"
        case 2:
            if !hasToken { return nil }
            if isOff { return "alerts_off" }
            return waits ? waiting : "apns"
        case 3:
            if isLive { return delivery }
            return hasToken ? "connection_only" : nil
        default:
            if !hasToken { return isLive ? delivery : nil }
            if isOff { return isLive ? delivery : "alerts_off" }
            if waits { return isLive ? delivery : waiting }
            if !isLive { return "apns" }
            // Its copy never alerts where a delivery would not.
            return delivery == "quiet" ? "apns+quiet" : "apns+copy"
        }
    }

    /// By connection: quiet where no alert may be raised or the user looks at the conversation already.
    func delivery(to presence: SmallWorld.Presence) -> String {
        if !isAllowed || world.isSilent || presence == .conversationOpen { return "quiet" }
        return presence == .justLeft ? "alert/4000" : "alert/8000"
    }

    var desktopIsPushed: Bool {
        if world.isVoip { return world.desktopToken == .voip }
        return world.desktopToken == .alert || world.desktopToken == .alertOff && world.isSilent
    }

    /// Behind a live desktop.
    var waiting: String {
        if world.holdSeconds > 0 { return "hold/\(world.holdSeconds)000" }
        if world.desktop == .conversationOpen { return "desktop_online" }
        // Final once the desktop's ack came or its own push was taken; where neither will be, at once.
        if world.strategy == 2 { return desktopIsPushed ? "wait" : "desktop_online" }
        return delivery(to: world.desktop).hasPrefix("alert") ? "wait" : "desktop_online"
    }

    var words: String {
        let ways = ways
        var words = [verdict, counts ? "+1" : "+0"]
        for device in ["desk", "pad", "phone"] {
            if let way = ways[device] { words.append("\(device)=\(way)") }
        }
        if isAllowed && ways.isEmpty { words.append("no_token") }
        return words.joined(separator: " ")
    }
}
