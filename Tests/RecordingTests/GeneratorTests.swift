// SPDX-License-Identifier: Apache-2.0
import Crypto
import Glibc
import JSON
import PushCore
import Testing

@testable import Recording
@testable import Worker

/// A made-up world: the same for the same seed, good for the worker, and as its settings say.
@Suite struct GeneratorTests {
    /// All that there is, in a small world.
    private static func settings(seed: UInt64 = 7) -> WorldSettings {
        var settings = WorldSettings()
        settings.seed = seed
        settings.users = 300
        settings.groups = 12
        settings.largest = 120
        settings.messages = 1_500
        settings.announcements = 3
        settings.durationMs = 600_000
        settings.readStorms = 1
        settings.bindStorms = 12
        settings.flapping = 0.2
        settings.hasDayCurve = true
        return settings
    }

    private static func lines(_ settings: WorldSettings) -> [[UInt8]] {
        let world = WorldGenerator(settings)
        var lines: [[UInt8]] = []
        while let line = world.next() { lines.append(line) }
        return lines
    }

    private static func redis(_ settings: WorldSettings) -> [String] {
        let redis = WorldRedis(settings)
        var lines: [String] = []
        while let line = redis.next() { lines.append(String(decoding: line, as: UTF8.self)) }
        return lines
    }

    private static func changes(_ settings: WorldSettings) -> [String] {
        let presence = WorldPresence(settings)
        var lines: [String] = []
        while let line = presence.next() { lines.append(String(decoding: line, as: UTF8.self)) }
        return lines
    }

    private static func values(_ settings: WorldSettings) throws -> [JSONTree] {
        let parser = JSONParser()
        return try lines(settings).map { line in
            let record = try #require(RecordLine(Array(line.dropLast()), parser))
            return try JSONTree(parsing: record.value ?? [])
        }
    }

    // MARK: Bytes

    /// Whoever changes what a seed makes changes this on purpose: worlds that people keep by their seed become others.
    @Test func aSeedMakesTheSameBytes() {
        let settings = Self.settings()
        let records = SHA256.hex(Self.lines(settings).flatMap { $0 })
        #expect(records == "123ff5e44ef37564d109e161efb3d6ba258115a90f1e716efde5b353edaa6038")
        let redis = SHA256.hex((Self.redis(settings) + Self.changes(settings)).flatMap { Array($0.utf8) })
        #expect(redis == "9113f9d137518684e83d89acccfc77bb09aab6a2b64313ef8744e8f39e59b167")
        #expect(Self.lines(settings) == Self.lines(settings))
        #expect(Self.lines(Self.settings(seed: 8)) != Self.lines(settings))
    }

    @Test func aLineIsWhatARecordingHolds() throws {
        let parser = JSONParser()
        let writer = RecordLineWriter()
        var lastMs: Int64 = 0
        for line in Self.lines(Self.settings()) {
            let record = try #require(RecordLine(Array(line.dropLast()), parser))
            #expect(writer.bytes(of: record) == line)
            let value = try JSONTree(parsing: record.value ?? [])
            // Keys as producers write them, times in their order.
            let key = value["conv"]?["id"]?.string ?? value["uid"]?.string
            #expect(record.key.map { String(decoding: $0, as: UTF8.self) } == key)
            let atMs = try #require(record.timestampMs)
            #expect(atMs >= lastMs && value["sent_ms"]?.int == atMs)
            lastMs = atMs
        }
    }

    @Test(arguments: [7, 8, 9, .max] as [UInt64])
    func theWorkerReadsEveryRecord(seed: UInt64) throws {
        let settings = Self.settings(seed: seed)
        let reader = EventReader(apps: [settings.app])
        let parser = JSONParser()
        var ids: Set<String> = []
        var kinds: Set<String> = []
        let lines = Self.lines(settings)
        for line in lines {
            let record = try #require(RecordLine(Array(line.dropLast()), parser))
            let value = record.value ?? []
            let isEvent = try JSONTree(parsing: value)["conv"] != nil
            let event = try reader.read(value, of: isEvent ? .events : .userState)
            ids.insert(event.id)
            kinds.insert(try JSONTree(parsing: value)["kind"]?.string ?? "")
        }
        #expect(ids.count == lines.count, "seed \(seed)")
        #expect(
            kinds == ["message", "revoke", "bind", "unbind", "settings", "mute", "read", "ack"],
            "seed \(seed): \(kinds)")
    }

    // MARK: As the settings say

    @Test func theLargestGroupGetsItsAnnouncementsAndNoMore() throws {
        for (messages, announcements) in [(1_500, 3), (10, 10), (7, 5), (9, 0), (1, 1)] {
            var settings = Self.settings()
            settings.messages = messages
            settings.announcements = announcements
            let largest = WorldGroups(settings).name(0)
            let events = try Self.values(settings).filter { $0["conv"] != nil }
            #expect(events.count == messages)
            let there = events.filter { $0["conv"]?["id"]?.string == largest }
            #expect(there.count == announcements, "\(messages)")
            let world = WorldGenerator(settings)
            while world.next() != nil {}
            #expect(world.tally.events == messages && world.tally.members >= 120 * announcements)
        }
    }

    @Test func theBusiestUserGetsTheMost() {
        func shares(_ exponent: Double) -> [Double] {
            var random = WorldRandom(seed: 3, stream: 0)
            var counts = [Int](repeating: 0, count: 1000)
            for _ in 0..<200_000 {
                counts[PowerLaw.rank(of: 1000, exponent: exponent, unit: random.unit())] += 1
            }
            return counts.map { Double($0) / 200_000 }
        }
        let even = shares(0)
        #expect(even.allSatisfy { $0 > 0.0005 && $0 < 0.0015 })
        // ln 2 / ln 1001 and ln 1.1 / ln 1001.
        let zipf = shares(1)
        #expect((zipf[0] - 0.1003).magnitude < 0.005 && (zipf[9] - 0.0138).magnitude < 0.002)
        #expect(shares(1.5)[0] > zipf[0] && shares(0.5)[0] < zipf[0])
    }

    @Test func powersAreThoseOfTheLibrary() {
        for base in [1e-9, 0.3, 1, 1.5, 2, 17, 500_000] {
            #expect((PowerLaw.ln(base) - log(base)).magnitude <= 1e-14 * max(1, log(base).magnitude))
            for exponent in [-2.5, -1, 0, 0.2, 1, 3] {
                let known = pow(base, exponent)
                #expect((PowerLaw.power(base, exponent) - known).magnitude <= 1e-13 * known, "\(base)^\(exponent)")
            }
        }
        #expect(PowerLaw.exp(-1e9) == 0)
    }

    @Test func theDayHasItsCurve() {
        var settings = WorldSettings()
        settings.messages = 100_000
        settings.startMs = 1_767_571_200_000
        settings.durationMs = 86_400_000
        func hours() -> [Int] {
            var times = WorldTimes(settings)
            var random = WorldRandom(seed: 1, stream: 0)
            var counts = [Int](repeating: 0, count: 24)
            while let ms = times.next(&random) { counts[Int(ms / 3_600_000 % 24)] += 1 }
            return counts
        }
        #expect(hours().allSatisfy { ($0 - 4167).magnitude < 5 })
        settings.hasDayCurve = true
        let sum = WorldTimes.hours.reduce(0, +)
        for (count, busy) in zip(hours(), WorldTimes.hours) {
            #expect((Double(count) - Double(busy) * 100_000 / Double(sum)).magnitude < 5)
        }
    }

    @Test func aStormOfBindsRaisesVersionsAndLogsOutWhoWasThere() throws {
        var versions: [String: Int64] = [:]
        var tokens: [String: String] = [:]
        var renewed = 0
        for value in try Self.values(Self.settings()) {
            guard let token = value["token"], let device = token["device"]?.string else { continue }
            let version = try #require(token["bind_ver"]?.int)
            if value["kind"]?.string == "bind" {
                if let before = versions[device] {
                    #expect(version > before && tokens[device] != token["token"]?.string)
                    renewed += 1
                }
                (versions[device], tokens[device]) = (version, token["token"]?.string)
            } else {
                // Of the token that stands there.
                #expect(versions[device] == version && tokens[device] == token["token"]?.string)
            }
        }
        #expect(renewed > 300 && Set(tokens.values).count == tokens.count)
        #expect(tokens.values.allSatisfy { $0.utf8.count == 64 })
    }

    // MARK: Redis

    @Test func aGroupOfHalfAMillionIsWrittenInSlices() throws {
        var settings = WorldSettings()
        settings.users = 600_000
        settings.largest = 500_000
        settings.groups = 40
        let groups = WorldGroups(settings)
        let sizes = (0..<40).map { groups.size($0) }
        #expect(sizes[0] == 500_000 && sizes == sizes.sorted(by: >) && sizes[39] < 10)
        let members = groups.members(0)
        var seen = [Bool](repeating: false, count: settings.users)
        for index in 0..<members.count { seen[members[index]] = true }
        #expect(seen.count { $0 } == 500_000)
        let redis = WorldRedis(settings)
        var longest = 0
        while let line = redis.next() { longest = max(longest, line.count) }
        // Of a line that a server takes 64 KB may stand by themselves.
        #expect(longest < 16_384 && redis.written == redis.memberCount && redis.memberCount == sizes.reduce(0, +))
    }

    @Test func presenceIsWhatGatewaysWrite() throws {
        let settings = Self.settings()
        let people = WorldPeople(settings)
        // As Redis would hold it.
        var there: [String: String] = [:]
        func apply(_ command: String) throws {
            let words = command.split(whereSeparator: \.isWhitespace).map(String.init)
            guard words[1].hasPrefix("p:") else { return }
            there[words[1]] = words[0] == "HSET" ? words[3] : nil
            guard words[0] == "HSET" else { return }
            let entry = words[2].utf8.withContiguousStorageIfAvailable { device in
                words[3].utf8.withContiguousStorageIfAvailable {
                    PresenceText.entry(device: UnsafeRawBufferPointer(device), value: UnsafeRawBufferPointer($0))
                }
            }
            #expect(entry??.map { $0.gatewayEpoch == 1 } == true, "\(command)")
        }
        for line in Self.redis(settings) { try apply(line) }
        var lastMs = 0
        for line in Self.changes(settings) {
            let split = try #require(line.firstIndex(of: " "))
            let ms = try #require(Int(line[..<split]))
            #expect(ms >= lastMs && ms >= 1000 && ms < 600_000)
            lastMs = ms
            try apply(String(line[line.index(after: split)...]))
        }
        let flapping = (0..<settings.users).filter { people.flaps($0) }
        #expect(flapping.count > 30 && flapping.count < 90)
        for user in flapping {
            let command = people.command(user, people.presence(user, atSeconds: 599))
            let words = command.split(separator: " ").map(String.init)
            #expect(there[words[1]] == (words[0] == "HSET" ? words[3] : nil), "\(command)")
        }
    }

    @Test(
        arguments: [
            { $0.users = 1 }, { $0.largest = 301 }, { $0.largest = 2 }, { $0.announcements = 1_501 },
            { $0.exponent = -1 }, { $0.exponent = .nan }, { $0.flapping = 1.1 }, { $0.durationMs = 0 },
            { $0.startMs = 0 }, { $0.readStorms = -1 },
        ] as [@Sendable (inout WorldSettings) -> Void])
    func impossibleSettingsOfAWorldAreReported(change: @Sendable (inout WorldSettings) -> Void) {
        var settings = Self.settings()
        #expect(settings.fault == nil)
        change(&settings)
        #expect(settings.fault != nil)
    }
}
