/// How the presence of flapping users changes while a world goes on: lines of the milliseconds since its start and the gateway's
/// Redis command. One thread's.
public final class WorldPresence {
    private let settings: WorldSettings
    private let people: WorldPeople
    private var second = 1
    /// The next user whose spell may end in that second.
    private var user: Int

    /// The settings must be without fault.
    public init(_ settings: WorldSettings) {
        self.settings = settings
        people = WorldPeople(settings)
        user = Self.first(in: second)
    }

    /// The next change with its line's end; nil: that is all.
    public func next() -> [UInt8]? {
        guard settings.flapping > 0 else { return nil }
        while Int64(second) * 1000 < settings.durationMs {
            while user < settings.users {
                let candidate = user
                user += WorldPeople.spellSeconds
                guard people.flaps(candidate) else { continue }
                // Not all of a second at once.
                let ms = second * 1000 + candidate * 1000 / settings.users
                let command = people.command(candidate, people.presence(candidate, atSeconds: second))
                return Array("\(ms) \(command)\n".utf8)
            }
            second += 1
            user = Self.first(in: second)
        }
        return nil
    }

    /// A user's spell ends where the seconds and his number are together a multiple of its length.
    private static func first(in second: Int) -> Int {
        (WorldPeople.spellSeconds - second % WorldPeople.spellSeconds) % WorldPeople.spellSeconds
    }
}
