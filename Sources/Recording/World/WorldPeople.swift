// SPDX-License-Identifier: Apache-2.0
/// The users of a world, each computed from a number.
struct WorldPeople {
    private let settings: WorldSettings
    private let key: ScrubKey

    /// Gateways that hold the connections.
    static let gateways = 8
    /// Time between state changes of a phone, in seconds.
    static let spellSeconds = 30

    private static let languages = ["zh-Hans", "en", "de", "ja", "ru", "zh-Hant", "es", "ar"]
    private static let zones = ["Asia/Shanghai", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "UTC"]
    private static let nicks = ["小明", "Alice", "李雷", "Björn", "韩梅梅", "😀 Bob", "김철수", "Zoë", "Дмитрий", "Ada"]

    init(_ settings: WorldSettings) {
        self.settings = settings
        key = ScrubKey(worldSeed: settings.seed)
    }

    func uid(_ user: Int) -> String { "u\(user)" }
    func device(_ user: Int, isPad: Bool) -> String { isPad ? "u\(user)-pad" : "u\(user)-phone" }
    func nick(_ user: Int) -> String { Self.nicks[user % Self.nicks.count] }
    func language(_ user: Int) -> String { Self.languages[trait(user, 1, of: Self.languages.count)] }
    func zone(_ user: Int) -> String { Self.zones[trait(user, 2, of: Self.zones.count)] }
    /// One in 32 users never allowed notifications.
    func hasTokens(_ user: Int) -> Bool { trait(user, 3, of: 32) != 0 }
    func hasPad(_ user: Int) -> Bool { trait(user, 4, of: 5) == 0 }
    func hasDND(_ user: Int) -> Bool { trait(user, 5, of: 20) == 0 }
    func hidesDetail(_ user: Int) -> Bool { trait(user, 6, of: 50) == 0 }

    /// One of the user's contacts, of which there are at most eight.
    func contact(of user: Int, _ random: inout WorldRandom) -> Int {
        let other = trait(user, 16 + UInt64(random.below(8)), of: settings.users - 1)
        return other >= user ? other + 1 : other
    }

    /// Made like the scrubber's replacements, so it is no real phone's token.
    func token(_ user: Int, isPad: Bool, version: Int) -> String {
        key.token("\(user)/\(isPad ? 1 : 0)/\(version)".utf8, count: 64)
    }

    // MARK: Presence

    /// The presence of a phone at its gateway.
    struct Presence: Equatable {
        enum State: Int { case foreground, background, off }
        var state: State
        /// Seconds since the world's start; negative for earlier.
        var sinceSeconds: Int
        var connection: Int
    }

    func flaps(_ user: Int) -> Bool {
        settings.flapping > 0
            && Double(WorldRandom.mix(settings.seed ^ 0x666C_6170, UInt64(user)) >> 11) * 0x1p-53 < settings.flapping
    }

    /// The presence of a flapping user at a time since the start.
    func presence(_ user: Int, atSeconds seconds: Int) -> Presence {
        let spell = (seconds + user % Self.spellSeconds) / Self.spellSeconds
        return Presence(
            state: Presence.State(rawValue: (spell + trait(user, 7, of: 3)) % 3) ?? .off,
            sinceSeconds: spell * Self.spellSeconds - user % Self.spellSeconds, connection: spell + 1)
    }

    /// The gateway's command for a presence (contract section 4), without a line end.
    func command(_ user: Int, _ presence: Presence) -> String {
        let name = "p:{\(settings.app):\(uid(user))}"
        let device = device(user, isPad: false)
        let sinceMs = settings.startMs + Int64(presence.sinceSeconds) * 1000
        let head = "ios,gw-\(user % Self.gateways),1,\(presence.connection),\(sinceMs)"
        switch presence.state {
        case .off: return "HDEL \(name) \(device)"
        case .foreground: return "HSET \(name) \(device) fg,\(head),-,-,-"
        case .background: return "HSET \(name) \(device) bg,\(head),\(sinceMs),-,l"
        }
    }

    private func trait(_ user: Int, _ which: UInt64, of count: Int) -> Int {
        WorldRandom.part(WorldRandom.mix(settings.seed &+ which &* 0x9E37_79B9, UInt64(user)), of: count)
    }
}
