/// The groups of a world: who is in them is computed, not kept, so that one of 500 000 costs no memory.
struct WorldGroups {
    private let settings: WorldSettings
    private let tag: String
    /// Of the power law by which groups get smaller.
    private let slope: Double

    /// About as many the smallest one has.
    private static let smallest = 5.0

    init(_ settings: WorldSettings) {
        self.settings = settings
        tag = settings.tag
        let fall = max(1, Double(settings.largest) / Self.smallest)
        slope = settings.groups > 1 ? PowerLaw.ln(fall) / PowerLaw.ln(Double(settings.groups)) : 0
    }

    func name(_ group: Int) -> String { "g-\(tag)-\(group)" }

    /// Group 0 is the largest.
    func size(_ group: Int) -> Int {
        if group == 0 { return settings.largest }
        let share = PowerLaw.power(Double(group + 1), -slope)
        return min(max(3, Int(Double(settings.largest) * share)), settings.largest)
    }

    /// One of the others than the largest, the smaller the likelier: each gets about as many pushes as any other.
    func pick(_ random: inout WorldRandom) -> Int {
        let others = settings.groups - 1
        let place = PowerLaw.power(1 - random.unit(), 1 / (slope + 1))
        return min(max(1, Int(place * Double(others)) + 1), others)
    }

    /// The members of a group in their order, each another user.
    struct Members {
        let count: Int
        private let users: Int
        private let step: Int
        private let first: Int

        init(count: Int, users: Int, hash: UInt64) {
            self.count = count
            self.users = users
            first = WorldRandom.part(WorldRandom.mix(hash, 1), of: users)
            // A step that has no divisor in common with the number of users meets each of them once.
            var step = 1 + WorldRandom.part(WorldRandom.mix(hash, 2), of: users - 1)
            while Self.divisor(step, users) != 1 { step = step % users + 1 }
            self.step = step
        }

        subscript(_ index: Int) -> Int { (index * step + first) % users }

        private static func divisor(_ one: Int, _ other: Int) -> Int {
            var (one, other) = (one, other)
            while other != 0 { (one, other) = (other, one % other) }
            return one
        }
    }

    func members(_ group: Int) -> Members {
        Members(
            count: size(group), users: settings.users,
            hash: WorldRandom.mix(settings.seed, 0x6772_6F75_7000_0000 | UInt64(group)))
    }

    /// A member's mute level in the group, as the backend has it: one in twenty muted it.
    func level(_ group: Int, _ member: Int) -> Int {
        WorldRandom.mix(UInt64(member), settings.seed &+ UInt64(group)) % 20 == 0 ? 5 : 0
    }
}
