// SPDX-License-Identifier: Apache-2.0
/// The groups of a world. Members are computed, not stored, so a group of 500 000 costs no memory.
struct WorldGroups {
    private let settings: WorldSettings
    private let tag: String
    /// Exponent of the power law of group sizes.
    private let slope: Double

    /// Approximate size of the smallest group.
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

    /// Any group except the largest. Smaller groups are more likely, so each gets about as many pushes as any other.
    func pick(_ random: inout WorldRandom) -> Int {
        let others = settings.groups - 1
        let place = PowerLaw.power(1 - random.unit(), 1 / (slope + 1))
        return min(max(1, Int(place * Double(others)) + 1), others)
    }

    /// The members of a group in order, without repeats.
    struct Members {
        let count: Int
        private let users: Int
        private let step: Int
        private let first: Int

        init(count: Int, users: Int, hash: UInt64) {
            self.count = count
            self.users = users
            first = WorldRandom.part(WorldRandom.mix(hash, 1), of: users)
            // A step without a common divisor with the number of users visits each user once.
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

    /// A member's mute level in the group, as the backend has it. One in twenty muted the group.
    func level(_ group: Int, _ member: Int) -> Int {
        WorldRandom.mix(UInt64(member), settings.seed &+ UInt64(group)) % 20 == 0 ? 5 : 0
    }
}
