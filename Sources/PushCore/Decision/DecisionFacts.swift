// SPDX-License-Identifier: Apache-2.0
/// The inputs and results of one decision's steps as codes: four bytes, without texts or ids, so that every push can
/// keep them (`carillon trace`).
public struct DecisionFacts: OptionSet, Sendable, Hashable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Step 2.
    public static let expired = DecisionFacts(rawValue: 1 << 0)
    /// Step 6.
    public static let read = DecisionFacts(rawValue: 1 << 1)
    public static let revoked = DecisionFacts(rawValue: 1 << 2)
    /// Step 7.
    public static let vetoed = DecisionFacts(rawValue: 1 << 3)
    /// Step 8: the level denies the alert, and nothing lifts it.
    public static let muted = DecisionFacts(rawValue: 1 << 4)
    /// The quiet window overrides the level (`dnd_mode: chain`).
    public static let windowDecides = DecisionFacts(rawValue: 1 << 5)
    /// Step 9.
    public static let quiet = DecisionFacts(rawValue: 1 << 6)
    public static let heldByQuiet = DecisionFacts(rawValue: 1 << 7)
    public static let forced = DecisionFacts(rawValue: 1 << 8)
    public static let mentionsMe = DecisionFacts(rawValue: 1 << 9)
    public static let mentionsAll = DecisionFacts(rawValue: 1 << 10)
    /// Step 10: the message may be counted.
    public static let countable = DecisionFacts(rawValue: 1 << 11)
    public static let counted = DecisionFacts(rawValue: 1 << 12)
    /// A phone or tablet in the foreground has the conversation open.
    public static let conversationOpen = DecisionFacts(rawValue: 1 << 13)
    /// Steps 6-10 ran. Not set for a Live Activity, and for an event that expired before them.
    public static let decided = DecisionFacts(rawValue: 1 << 14)

    /// Step 9 did not run: an earlier step had denied, and the settings were not read.
    public static let settingsUnread = DecisionFacts(rawValue: 1 << 15)

    // Bits 16-19 have the level, 20-22 the link.

    /// A snooze holds, alone or together with a window.
    public static let snoozed = DecisionFacts(rawValue: 1 << 23)

    private static let levels: [MuteLevel] = [.unset, .all, .mentions, .mentionsOfMe, .mentionsOfAll, .blocked]
    private static let links: [MuteChain.Link] = [.none, .user, .group, .app, .settings]

    /// The level of step 8 and the link of the chain that set it.
    mutating func keep(_ chain: MuteChain) {
        rawValue |= UInt64(Self.levels.firstIndex(of: chain.level) ?? 0) << 16
        rawValue |= UInt64(Self.links.firstIndex(of: chain.link) ?? 0) << 20
    }

    /// The end of the mute or of the quiet hours that deny the alert, Unix ms. Nil for no end, and beyond the year 2106.
    public internal(set) var deniedUntilMs: Int64? {
        get {
            let seconds = rawValue >> 32
            return seconds == 0 ? nil : Int64(seconds) * 1000
        }
        set {
            let seconds = newValue.flatMap { UInt32(exactly: $0 / 1000) } ?? 0
            rawValue = rawValue & 0xFFFF_FFFF | UInt64(seconds) << 32
        }
    }

    mutating func keep(_ fact: DecisionFacts, if holds: Bool) {
        if holds { rawValue |= fact.rawValue }
    }

    public var level: MuteLevel {
        let place = Int(rawValue >> 16 & 0xF)
        return place < Self.levels.count ? Self.levels[place] : .unset
    }

    public var link: MuteChain.Link {
        let place = Int(rawValue >> 20 & 7)
        return place < Self.links.count ? Self.links[place] : .none
    }

    /// Step 8 may have said otherwise with the settings, which were not read: a link before them would have decided.
    private var isLevelUnread: Bool { contains(.settingsUnread) && (link == .none || link == .app) }

    /// One step in words: its outcome as `explain` names it, and its input.
    public struct Step: Sendable, Equatable {
        public var step: DecisionStep
        public var outcome: String
        public var input: String
        /// False if this step denies the alert, or would without an earlier deny.
        public var passes: Bool
    }

    /// The steps that ran, in the contract's order.
    public var steps: [Step] {
        func step(_ step: DecisionStep, _ reason: Reason?, _ passed: String, _ input: String = "") -> Step {
            Step(step: step, outcome: reason?.rawValue ?? passed, input: input, passes: reason == nil)
        }
        var steps = [step(.expiry, contains(.expired) ? .expired : nil, "in time")]
        guard contains(.decided) else { return steps }
        let readReason: Reason? = contains(.read) ? .alreadyRead : contains(.revoked) ? .revoked : nil
        steps.append(step(.read, readReason, "unread"))
        steps.append(step(.veto, contains(.vetoed) ? .msgPushOff : nil, "wanted"))
        let mention = MentionClass(me: contains(.mentionsMe), all: contains(.mentionsAll)).text
        let forced = contains(.forced) ? ", forced" : ""
        steps.append(
            step(
                .mute, contains(.muted) && !isLevelUnread ? .convMuted : nil,
                contains(.windowDecides)
                    ? "the DND window decides" : isLevelUnread ? "not looked at" : "let through",
                isLevelUnread ? "" : "\(MuteChain.text(level, by: link)), \(mention)\(forced)"))
        steps.append(
            step(
                .dnd, contains(.heldByQuiet) ? .dnd : nil,
                contains(.settingsUnread) ? "not looked at" : "let through",
                contains(.settingsUnread)
                    ? ""
                    : contains(.snoozed)
                        ? "snoozed\(forced)" : contains(.quiet) ? "active window\(forced)" : "no active window"))
        // The claim counts no message that was read or revoked before it.
        let isCounted = contains(.counted) && readReason == nil
        steps.append(
            step(.badge, nil, isCounted ? "counted" : "not counted", isCounted ? "" : whyNotCounted(readReason)))
        return steps
    }

    private func whyNotCounted(_ readReason: Reason?) -> String {
        if let readReason { return readReason == .revoked ? "revoked before" : "read before" }
        if contains(.conversationOpen) { return NotCounted.open.rawValue }
        return (contains(.countable) ? NotCounted.unheard : .unwanted).rawValue
    }
}

/// Why a message does not count for the badge (step 10).
enum NotCounted: String {
    case unwanted = "push.badge is false, or a revoke that does not count"
    case unheard = "vetoed or muted"
    case open = "the conversation is open on a phone or tablet"

    /// - Returns: nil if it counts.
    init?(isWanted: Bool, isHeard: Bool, isOpen: Bool) {
        if !isWanted {
            self = .unwanted
        } else if !isHeard {
            self = .unheard
        } else if isOpen {
            self = .open
        } else {
            return nil
        }
    }
}

/// Keeps the results of the steps as codes. Costs a few instructions.
public struct FactTrace: DecisionTrace, Sendable {
    public private(set) var facts: DecisionFacts = []

    public init() {}

    public mutating func record(
        _ step: DecisionStep, input: @autoclosure () -> String, outcome: @autoclosure () -> String
    ) {}

    public mutating func keep(_ facts: @autoclosure () -> DecisionFacts) { self.facts = facts() }
}
