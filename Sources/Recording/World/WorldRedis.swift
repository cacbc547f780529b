// SPDX-License-Identifier: Apache-2.0
/// The Redis data of a world before its first message, as commands for `redis-cli`: groups with members, gateways'
/// leases, presence. Lines of some kilobytes, however large a group is. For one thread only.
public final class WorldRedis {
    /// Members per command.
    private static let slice = 500

    private enum Part {
        case groups(Int, from: Int)
        case leases(Int)
        case presence(user: Int)
        case done
    }

    private let settings: WorldSettings
    private let people: WorldPeople
    private let groups: WorldGroups
    private let seconds: Int64
    private var part = Part.groups(0, from: 0)
    private var members: WorldGroups.Members?
    /// Members written so far.
    public private(set) var written = 0

    /// The settings must have no fault.
    public init(_ settings: WorldSettings) {
        self.settings = settings
        people = WorldPeople(settings)
        groups = WorldGroups(settings)
        // A gateway renews its lease every few seconds. This one is valid for the whole replay.
        seconds = settings.durationMs / 1000 + 86_400
    }

    /// Members of all groups together.
    public var memberCount: Int { (0..<settings.groups).reduce(0) { $0 + groups.size($1) } }

    /// The next command with its line end; nil at the end.
    public func next() -> [UInt8]? {
        while true {
            switch part {
            case .groups(let group, let from):
                if let line = slice(of: group, from: from) { return line }
            case .leases(let gateway):
                guard settings.flapping > 0, gateway < WorldPeople.gateways else {
                    part = settings.flapping > 0 ? .presence(user: 0) : .done
                    continue
                }
                part = .leases(gateway + 1)
                return Array("SET gw:{gw-\(gateway)} 1 EX \(seconds)\n".utf8)
            case .presence(let user):
                guard user < settings.users else {
                    part = .done
                    continue
                }
                part = .presence(user: user + 1)
                let presence = people.flaps(user) ? people.presence(user, atSeconds: 0) : nil
                guard let presence, presence.state != .off else { continue }
                return Array((people.command(user, presence) + "\n").utf8)
            case .done: return nil
            }
        }
    }

    private func slice(of group: Int, from: Int) -> [UInt8]? {
        guard group < settings.groups else {
            part = .leases(0)
            return nil
        }
        let all = members ?? groups.members(group)
        let end = min(all.count, from + Self.slice)
        members = end == all.count ? nil : all
        part = end == all.count ? .groups(group + 1, from: 0) : .groups(group, from: end)
        var line = "HSET g:{\(settings.app):\(groups.name(group))}"
        for index in from..<end {
            let member = all[index]
            line += " \(people.uid(member)) \(groups.level(group, member))"
        }
        written += end - from
        return Array((line + "\n").utf8)
    }
}
