// SPDX-License-Identifier: Apache-2.0
/// Presence changes of flapping users during a world: lines with the milliseconds since the start and the gateway's
/// Redis command. For one thread only.
public final class WorldPresence {
    private let settings: WorldSettings
    private let people: WorldPeople
    private var second = 1
    /// The next user with a possible change in that second.
    private var user: Int

    /// The settings must have no fault.
    public init(_ settings: WorldSettings) {
        self.settings = settings
        people = WorldPeople(settings)
        user = Self.first(in: second)
    }

    /// The next change with its line end; nil at the end.
    public func next() -> [UInt8]? {
        guard settings.flapping > 0 else { return nil }
        while Int64(second) * 1000 < settings.durationMs {
            while user < settings.users {
                let candidate = user
                user += WorldPeople.spellSeconds
                guard people.flaps(candidate) else { continue }
                // Spreads the changes over the second.
                let ms = second * 1000 + candidate * 1000 / settings.users
                let command = people.command(candidate, people.presence(candidate, atSeconds: second))
                return Array("\(ms) \(command)\n".utf8)
            }
            second += 1
            user = Self.first(in: second)
        }
        return nil
    }

    /// A user's state changes when seconds plus user number is a multiple of the spell's length.
    private static func first(in second: Int) -> Int {
        (WorldPeople.spellSeconds - second % WorldPeople.spellSeconds) % WorldPeople.spellSeconds
    }
}
