// SPDX-License-Identifier: Apache-2.0
import Console
import Digits
import JSON
import Recording

/// `carillon generate`: a generated world as a recording for `replay`.
struct GenerateCommand: Command {
    static let spec = CommandSpec(
        name: "generate",
        summary: "a generated world as a recording: users, groups, storms; a seed makes the same bytes",
        details: """
            Writes NDJSON for `replay`: first all users bind their devices, then messages follow in the order of time (1:1 by Zipf's
            law, to groups, of a service to many), with reads, acks, mutes and revokes. Equal options give equal bytes on every
            machine. Lines name no topic: `replay` writes each to the input topic of its kind. Dates begin at --start: use replay's
            --shift-times. Messages expire a day after the end of the world.

            The sizes of groups follow a power law from --largest to about five. The largest group gets --announcements messages and
            no others. Smaller groups get more messages, so that each group gets about the same number of pushes.

            Groups and presence are in Redis. --redis-out writes the commands that create them before the first message, for
            redis-cli: groups with members and levels, leases of the gateways (until a day after the world), presence. --presence-out
            writes the changes of presence of --flapping users: milliseconds since the start, then a command. Each phone changes
            between foreground, background and offline every thirty seconds.

            In a read storm, all users read the newest 4096 messages within two seconds. In a bind storm, a tenth of the users (at
            most 100000) bind new tokens within ten seconds; some log out before. Storms have equal distances in time.

            Tokens are SHA-256 hashes, as with `record --scrub`: no real phone has one. The memory in use does not depend on the size
            of the world.

            exit codes: 0 done, 1 a file cannot be written or the command was stopped, 64 bad usage
            """,
        options: [
            .value("out", "FILE", "the recording; - for standard output", required: true),
            .flag("zstd", "compressed; without it too where FILE ends in .zst"),
            .value(
                "redis-out", "FILE",
                "the contents of Redis at the start, for redis-cli --pipe <FILE (of a cluster: -c <FILE)"),
            .value("presence-out", "FILE", "changes of presence, with --flapping"),
            .value("seed", "N", "of chance (1)"),
            .value("users", "N", "users with devices, who get messages (10000)"),
            .value("groups", "N", "(200, at most a tenth of the users)"),
            .value("largest", "N", "members of the largest group, at most the users (2000)"),
            .value("messages", "N", "messages and revokes (100000)"),
            .value("announcements", "N", "of them, to the largest group (1)"),
            .value("zipf", "S", "exponent of Zipf's law; 0: all users alike (1)"),
            .value("start", "TIME", "such as 2026-11-22T14:05:00Z, or Unix milliseconds (2026-01-05T08:00:00Z)"),
            .value("duration", "TIME", "from the first message to the last: 90s, 5m, 24h (1h)"),
            .flag("day-curve", "more messages by day than by night, by the hours of UTC"),
            .value("read-storms", "N", "(0)"),
            .value("bind-storms", "N", "(0)"),
            .value(
                "flapping", "SHARE",
                "share of the users with a phone that connects and disconnects at a gateway, 0 to 1 (0)"),
            .value("app", "APP", "(im)"),
            .value("bundle", "ID", "the tokens' topic (com.example.im)"),
            .value("environment", "ENV", "the tokens' env, production or sandbox (production)"),
            CommandSpec.json,
        ])

    private let settings: WorldSettings
    private let out: String
    private let redisOut: String?
    private let presenceOut: String?
    private let isCompressed: Bool
    private let isJSON: Bool

    init(_ arguments: Arguments) throws(Arguments.UsageError) {
        out = arguments.string("out") ?? ""
        redisOut = arguments.string("redis-out")
        presenceOut = arguments.string("presence-out")
        isCompressed = arguments.has("zstd") || out.hasSuffix(".zst")
        isJSON = arguments.has("json")
        settings = try Self.settings(arguments)
        if settings.flapping > 0, redisOut == nil {
            throw Arguments.UsageError(message: "--flapping needs --redis-out: presence and leases live in Redis")
        }
        if presenceOut != nil, settings.flapping == 0 {
            throw Arguments.UsageError(message: "--presence-out wants --flapping")
        }
        if [out, redisOut, presenceOut].filter({ $0 == "-" }).count > 1 {
            throw Arguments.UsageError(message: "only one of the files can be standard output")
        }
    }

    private static func settings(_ arguments: Arguments) throws(Arguments.UsageError) -> WorldSettings {
        var settings = WorldSettings()
        if let text = arguments.string("seed") {
            guard let seed = UInt64(text) else {
                throw Arguments.UsageError(message: "--seed needs a whole number from 0 on; \"\(text)\" is not one")
            }
            settings.seed = seed
        }
        settings.users = try arguments.int("users", default: settings.users, in: 2...WorldSettings.usersMax)
        settings.groups = try arguments.int(
            "groups", default: min(settings.groups, settings.users / 10), in: 0...WorldSettings.groupsMax)
        settings.largest = try arguments.int("largest", default: min(settings.largest, settings.users))
        settings.messages = try arguments.int("messages", default: settings.messages, in: 0...WorldSettings.messagesMax)
        settings.announcements = try arguments.int("announcements", default: min(1, settings.messages))
        settings.readStorms = try arguments.int("read-storms", default: 0, in: 0...WorldSettings.stormsMax)
        settings.bindStorms = try arguments.int("bind-storms", default: 0, in: 0...WorldSettings.stormsMax)
        settings.exponent = try number(arguments, "zipf") ?? settings.exponent
        settings.flapping = try number(arguments, "flapping") ?? settings.flapping
        settings.hasDayCurve = arguments.has("day-curve")
        settings.app = arguments.string("app") ?? settings.app
        settings.bundle = arguments.string("bundle") ?? settings.bundle
        settings.environment = arguments.string("environment") ?? settings.environment
        guard ["production", "sandbox"].contains(settings.environment) else {
            throw Arguments.UsageError(message: "--environment needs production or sandbox")
        }
        guard (1...64).contains(settings.app.utf8.count), (1...256).contains(settings.bundle.utf8.count) else {
            throw Arguments.UsageError(message: "--app needs 1 to 64 bytes, --bundle 1 to 256")
        }
        if let text = arguments.string("start") {
            guard let startMs = InstantText.milliseconds(text) else {
                throw Arguments.UsageError(message: "--start needs a time like 2026-11-22T14:05:00Z, not \"\(text)\"")
            }
            settings.startMs = startMs
        }
        if let seconds = try TimeSpan.seconds(arguments, "duration") { settings.durationMs = Int64(seconds * 1000) }
        if let fault = settings.fault { throw Arguments.UsageError(message: "a world needs \(fault)") }
        return settings
    }

    private static func number(_ arguments: Arguments, _ name: String) throws(Arguments.UsageError) -> Double? {
        guard let text = arguments.string(name) else { return nil }
        guard let number = Double(text), number.isFinite, number >= 0 else {
            throw Arguments.UsageError(message: "--\(name) needs a number from 0 on; \"\(text)\" is not one")
        }
        return number
    }

    func run() async -> ExitCode {
        do {
            let stop = StopFlag(try EndSignals())
            let clock = ProgressBar("generating", total: nil)
            let tally = try writeRecords(stop)
            let members = try writeRedis(stop)
            let changes = try writePresence(stop)
            report(tally, members: members, changes: changes, isWhole: !stop.isSet, seconds: clock.seconds)
            return stop.isSet ? .failed : .done
        } catch {
            Terminal.err("carillon generate: \(error)\n")
            return .failed
        }
    }

    private func writeRecords(_ stop: StopFlag) throws -> WorldTally {
        let world = WorldGenerator(settings)
        let file = try OutputFile(path: out, isCompressed: isCompressed)
        var bar = ProgressBar("generating", total: settings.messages)
        while !stop.isSet, let line = world.next() {
            try file.write(line)
            bar.advance(to: world.tally.events)
        }
        try file.close()
        bar.clear()
        return world.tally
    }

    /// - Returns: the number of group members written.
    private func writeRedis(_ stop: StopFlag) throws -> Int {
        guard let redisOut else { return 0 }
        let redis = WorldRedis(settings)
        let file = try OutputFile(path: redisOut)
        var bar = ProgressBar("groups", total: redis.memberCount)
        while !stop.isSet, let line = redis.next() {
            try file.write(line)
            bar.advance(to: redis.written)
        }
        try file.close()
        bar.clear()
        return redis.written
    }

    private func writePresence(_ stop: StopFlag) throws -> Int {
        guard let presenceOut else { return 0 }
        let presence = WorldPresence(settings)
        let file = try OutputFile(path: presenceOut)
        var bar = ProgressBar("presence", total: nil)
        while !stop.isSet, let line = presence.next() {
            try file.write(line)
            bar.advance(to: bar.done + 1)
        }
        try file.close()
        bar.clear()
        return bar.done
    }

    // MARK: Output

    private func report(_ tally: WorldTally, members: Int, changes: Int, isWhole: Bool, seconds: Double) {
        let kinds = tally.records.sorted { $0.key < $1.key }
        // Standard output may be one of the files.
        let isTaken = [out, redisOut, presenceOut].contains("-")
        guard isJSON else {
            var text: TerminalText = "\(tally.count) records, \(tally.bytes) bytes\(isWhole ? "" : ", STOPPED")\n"
            text += "  \(kinds.map { "\($0.value) \($0.key)" }.joined(separator: ", "))\n"
            text += "  to \(tally.named) named receivers and \(tally.members) members of groups\n"
            if redisOut != nil { text += "  groups of \(members) members together\n" }
            if presenceOut != nil { text += "  \(changes) changes of presence\n" }
            if redisOut == nil, settings.groups > 0 {
                text += "  the groups have no members in Redis: --redis-out writes them\n"
            }
            if isTaken { Terminal.err(text) } else { Terminal.out(text) }
            return
        }
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("seed")
        writer.number(String(settings.seed))
        writer.member("records", Int64(tally.count))
        writer.member("bytes", Int64(tally.bytes))
        writer.member("complete", isWhole)
        writer.key("kinds")
        writer.beginObject()
        for (kind, count) in kinds {
            writer.key(escaping: kind)
            writer.int(count)
        }
        writer.endObject()
        writer.member("named", Int64(tally.named))
        writer.member("members", Int64(tally.members))
        writer.member("group_members", Int64(members))
        writer.member("presence_changes", Int64(changes))
        writer.key("seconds")
        writer.double(seconds)
        writer.endObject()
        let json = String(decoding: writer.bytes, as: UTF8.self) + "\n"
        if isTaken { Terminal.err(json: json) } else { Terminal.out(json: json) }
    }
}
