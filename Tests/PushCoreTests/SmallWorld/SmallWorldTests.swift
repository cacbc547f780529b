// SPDX-License-Identifier: Apache-2.0
import Glibc
import PushCore
import Testing

/// Every case of two small worlds: `decide` says what the naive rules say. A run looks at each eleventh case, and with
/// `CARILLON_ALL_CASES=1` at all of them.
///
/// The first world holds all that steps 2-10 look at, the second all that step 11 looks at; each varies a little of the
/// other's.
@Suite struct SmallWorldTests {
    /// One slice of the first world, so that slices run side by side.
    struct Slice: CustomTestStringConvertible, Sendable {
        var type: Conversation.Kind
        var isChain: Bool

        var testDescription: String { "\(type.rawValue), \(isChain ? "chain" : "independent")" }

        static let all = Conversation.Kind.allCases.flatMap { type in
            [false, true].map { Slice(type: type, isChain: $0) }
        }
    }

    @Test(arguments: Slice.all)
    func everyAlertIsDecidedByTheRules(_ slice: Slice) {
        var check = Check()
        var world = SmallWorld()
        world.type = slice.type
        world.isChain = slice.isChain
        world.phoneToken = .alert
        for userMute in SmallWorld.UserMute.allCases {
            world.userMute = userMute
            for (groupLevel, typeLevel, appLevel) in Self.furtherLevels(behind: userMute) {
                world.groupLevel = groupLevel
                world.typeLevel = typeLevel
                world.appLevel = appLevel
                for (mentionsMe, mentionsAll) in [(false, false), (true, false), (false, true), (true, true)] {
                    world.mentionsMe = mentionsMe
                    world.mentionsAll = mentionsAll
                    forEachForceAndWindow(&world, &check)
                }
            }
        }
        check.expectNone(atLeast: (2 * 11 + 5 * 2) * 4 * 5 * 7 * 2 * 14)
    }

    /// The group's, the user's for the type and the app's, in full where the user's own says nothing.
    private static func furtherLevels(behind userMute: SmallWorld.UserMute) -> [(Int, Int, Int)] {
        userMute == .none || userMute == .blockedButOver
            ? [
                (0, 0, 0), (-1, 0, 5), (1, 0, 0), (2, 0, 0), (5, 0, -1), (0, 0, 4), (0, 0, 5), (0, 5, -1), (0, -1, 5),
                (0, 2, 5), (-1, 5, 0),
            ] : [(0, 0, 0), (5, 5, -1)]
    }

    private func forEachForceAndWindow(_ world: inout SmallWorld, _ check: inout Check) {
        for force in SmallWorld.Force.allCases {
            world.force = force
            for window in SmallWorld.Window.allCases {
                world.window = window
                for overrides in [false, true] {
                    world.forceOverrides = overrides
                    forEachVetoAndStaleness(&world, &check)
                }
            }
        }
    }

    /// Each of the sender's and the clock's words alone, and each pair that meets in practice.
    private func forEachVetoAndStaleness(_ world: inout SmallWorld, _ check: inout Check) {
        let badges = SmallWorld.Badge.allCases
        world.phone = .none
        world.veto = .none
        for staleness in SmallWorld.Staleness.allCases {
            world.staleness = staleness
            for badge in staleness == .none ? badges : [.wanted] {
                world.badge = badge
                check.look(at: world)
            }
        }
        world.staleness = .none
        world.badge = .wanted
        for veto in SmallWorld.Veto.allCases where veto != .none {
            world.veto = veto
            check.look(at: world)
        }
        world.veto = .none
        for phone in [SmallWorld.Presence.foreground, .justLeft, .conversationOpen, .suspect] {
            world.phone = phone
            check.look(at: world)
        }
    }

    @Test(arguments: [1, 2, 3, 4], [false, true])
    func everyDeviceGoesItsWayByTheRules(strategy: Int, pushWhenDesktopOnline: Bool) {
        var check = Check()
        var world = SmallWorld()
        world.strategy = strategy
        world.pushWhenDesktopOnline = pushWhenDesktopOnline
        for phone in SmallWorld.Presence.allCases {
            world.phone = phone
            for phoneToken in SmallWorld.Token.allCases {
                world.phoneToken = phoneToken
                for desktop in SmallWorld.Presence.allCases {
                    world.desktop = desktop
                    for desktopToken in [SmallWorld.Token.none, .alert, .alertOff] {
                        world.desktopToken = desktopToken
                        forEachPadAndKind(&world, &check)
                    }
                }
            }
        }
        check.expectNone(atLeast: 8 * 5 * 8 * 3 * 4 * 3 * 2 * 9)
    }

    private func forEachPadAndKind(_ world: inout SmallWorld, _ check: inout Check) {
        for (pad, padToken) in [
            (SmallWorld.Presence.none, SmallWorld.Token.none), (.off, .alert), (.foreground, .voip),
            (.conversationOpen, .none),
        ] {
            world.pad = pad
            world.padToken = padToken
            for (isVoip, isSilent) in [(false, false), (true, false), (false, true)] {
                world.isVoip = isVoip
                world.isSilent = isSilent
                for holdSeconds in [0, 30] {
                    world.holdSeconds = holdSeconds
                    forEachVerdict(&world, &check)
                }
            }
        }
    }

    /// Allowed, forced, denied by the user, denied by the sender, expired.
    private func forEachVerdict(_ world: inout SmallWorld, _ check: inout Check) {
        for only in SmallWorld.Only.allCases {
            world.only = only
            check.look(at: world)
        }
        world.only = .all
        world.userMute = .blocked
        check.look(at: world)
        world.force = .me
        check.look(at: world)
        world.force = .none
        world.userMute = .none
        world.veto = .pushOff
        check.look(at: world)
        world.veto = .none
        world.staleness = .expired
        check.look(at: world)
        world.staleness = .none
    }
}

/// Counts cases and keeps the first that disagree.
private struct Check {
    private var cases = 0
    private var faults = 0
    private var first: [String] = []
    /// A prime that no domain's size has: so each value meets each other one.
    private static let stride = getenv("CARILLON_ALL_CASES") == nil ? 11 : 1

    mutating func look(at world: SmallWorld) {
        cases += 1
        guard cases.isMultiple(of: Self.stride) else { return }
        let naive = NaiveRules(world: world).words
        let decided = world.inputs.decide().sortedWords
        guard naive != decided else { return }
        faults += 1
        if first.count < 3 { first.append("decide: \(decided), rules: \(naive), for \(world)") }
    }

    func expectNone(atLeast: Int) {
        #expect(faults == 0, "\(faults) of \(cases): \(first.joined(separator: "\n"))")
        #expect(cases >= atLeast, "\(cases) cases")
    }
}

extension Decision {
    /// `words` with the devices in the rules' order, which is no rule of theirs.
    fileprivate var sortedWords: String {
        var words = alert.word
        words += counted ? " +1" : " +0"
        for device in ["desk", "pad", "phone"] {
            for route in routes where route.device == device { words += " \(device)=\(route.way.word)" }
        }
        return reachesNobody ? words + " no_token" : words
    }
}
