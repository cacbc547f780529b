// SPDX-License-Identifier: Apache-2.0
import EventLoop
import SimulatedFleet

/// The settings of an app of the world, as an operator writes them into the configuration.
public struct AppSettings: Sendable {
    public enum Badge: String, Sendable { case server, none, sender }

    public var id: String
    public var strategy = 1
    public var badge = Badge.server
    public var badgeCap: Int64 = 0
    public var profile = "nim"
    /// `dnd_mode: chain`.
    public var windowDecides = false
    public var forceOverridesDND = false
    public var clearsOnRead = false
    public var sendsDigests = false
    /// `coalesce.window_s`, in tenths of a second.
    public var burstTenths = 0
    public var inFlight = 2000
    /// `default_levels` of groups.
    public var groupLevel = 0
    public var isCommunication = false
    /// `title`, for alerts without one. No conversation has a name.
    public var title = "none"
    public var defaultLanguage = "zh-Hans"
    /// What is before and after the name in `prefix`.
    public var prefix = ("", ": ")

    /// `limits.removals.minimum`; 0: the usual one.
    public var removalsMinimum = 0
    /// `limits.background_per_hour`; 0: no limit.
    public var backgroundPerHour = 0
    /// Named `main`, `second` and `third`.
    public var hasCredentialSets = false

    public init(id: String) { self.id = id }

    /// The usual settings half of the time, else a few others.
    init(id: String, kinds: Set<Plan.Kind>, random: inout SmallRandom) {
        self.id = id
        func isChosen(_ share: UInt64) -> Bool { random.next(in: 1...share) == 1 }
        profile = ["nim", "nim", "raw", "rc", "wps"][Int(random.next(in: 0...4))]
        clearsOnRead = isChosen(4)
        forceOverridesDND = isChosen(3)
        if kinds.contains(.quiet) {
            windowDecides = isChosen(4)
            sendsDigests = isChosen(3)
        }
        if isChosen(3) { strategy = Int(random.next(in: 2...4)) }
        if isChosen(4) { badge = isChosen(2) ? .none : .sender }
        if isChosen(6) { badgeCap = 3 }
        if isChosen(5) { inFlight = Int(random.next(in: 1...4)) }
        if kinds.contains(.mutes), isChosen(5) { groupLevel = [1, 2, 4][Int(random.next(in: 0...2))] }
        if kinds.contains(.options) {
            isCommunication = isChosen(4)
            if isChosen(4) { prefix = ("[", "] ") }
        }
        if kinds.contains(.languages), isChosen(3) { defaultLanguage = "en" }
        if kinds.contains(.bursts), badge != .none { burstTenths = Int(random.next(in: 5...40)) }
    }

    /// The app of the episodes, without settings that make an end depend on its moment.
    init(kit id: String, random: inout SmallRandom) {
        self.id = id
        func isChosen(_ share: UInt64) -> Bool { random.next(in: 1...share) == 1 }
        profile = ["nim", "raw", "rc", "wps"][Int(random.next(in: 0...3))]
        clearsOnRead = isChosen(2)
        forceOverridesDND = isChosen(2)
        windowDecides = isChosen(3)
        if isChosen(4) { badge = isChosen(2) ? .none : .sender }
        if isChosen(6) { badgeCap = 3 }
        isCommunication = isChosen(2)
        if isChosen(3) { prefix = ("[", "] ") }
        if isChosen(2) { defaultLanguage = "en" }
        sendsDigests = isChosen(4)
        if badge != .none, !sendsDigests, isChosen(7) { burstTenths = Int(random.next(in: 10...30)) }
        hasCredentialSets = true
        if isChosen(4) { removalsMinimum = 2 }
        if isChosen(4) { backgroundPerHour = 2 }
    }

    /// The app's entry in the configuration.
    func text(_ key: SimulatedKey) -> String {
        key.app(id, hasSets: hasCredentialSets) + """
                profile: \(profile)
                strategy: \(strategy)
                badge: \(badge.rawValue)
                badge_cap: \(badgeCap)
                dnd_mode: \(windowDecides ? "chain" : "independent")
                force_overrides_dnd: \(forceOverridesDND)
                clear_on_read: \(clearsOnRead)
                dnd_digest: \(sendsDigests)
                communication: \(isCommunication)
                title: \(title)
                default_language: \(defaultLanguage)
                prefix: "\(prefix.0){nick}\(prefix.1)"
                templates: \(key.templatesPath)
                default_levels: {p2p: 0, group: \(groupLevel)}
                coalesce: {window_s: \(burstTenths / 10).\(burstTenths % 10)}
                limits: {in_flight: \(inFlight), background_per_hour: \(backgroundPerHour)\(brake)}

            """
    }

    private var brake: String {
        removalsMinimum > 0 ? ", removals: {minimum: \(removalsMinimum), share: 0.01}" : ""
    }

    var text: String {
        var parts = ["\(id): \(profile), strategy \(strategy)"]
        if badge != .server { parts.append("badge \(badge.rawValue)") }
        if badgeCap > 0 { parts.append("badge cap \(badgeCap)") }
        if windowDecides { parts.append("chain") }
        if forceOverridesDND { parts.append("force overrides DND") }
        if clearsOnRead { parts.append("clear on read") }
        if sendsDigests { parts.append("digests") }
        if burstTenths > 0 { parts.append("bursts of \(burstTenths * 100) ms") }
        if inFlight < 2000 { parts.append("\(inFlight) in flight") }
        if isCommunication { parts.append("communication") }
        if title != "none" { parts.append("title \(title)") }
        if defaultLanguage != "zh-Hans" { parts.append(defaultLanguage) }
        if backgroundPerHour > 0 { parts.append("\(backgroundPerHour) background pushes an hour") }
        if removalsMinimum > 0 { parts.append("a brake at \(removalsMinimum) removals") }
        if groupLevel > 0 { parts.append("groups at level \(groupLevel)") }
        return parts.joined(separator: ", ")
    }
}
