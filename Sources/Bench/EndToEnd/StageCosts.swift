// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Processes

/// CPU time of a push by stage: the worker's shards, and redis-server's commands.
///
/// The worker reports the processor time of each stage (`run --stage-times`), without its waits for the kernel. So the
/// stages' proportions come from it; the total comes from the kernel's accounting of the threads. redis-server reports
/// time per command (`INFO commandstats`) by a clock that continues while other threads run; it is scaled by the part of
/// the time in which the kernel let it run. Commands inside a script are counted twice: as themselves and in the script's
/// time.
struct StageCosts: Sendable, Equatable {
    struct Part: Sendable, Equatable {
        var workerMicros = 0.0
        var redisMicros = 0.0
        /// Commands sent by the worker.
        var redisCommands = 0.0
    }

    /// One command of redis-server, per push.
    struct Command: Sendable, Equatable {
        var name: String
        var calls: Double
        var micros: Double
    }

    /// Everything per push (or member).
    var parts: [StageClock.Stage: Part] = [:]
    /// librdkafka's threads and the other threads of the process.
    var otherThreadsMicros = 0.0
    /// redis-server's time outside commands: network and protocol.
    var redisProtocolMicros = 0.0
    var commands: [Command] = []
    /// Number of allocations; nil if not counted.
    var allocations: Double?

    var redisCommands: Double { parts.values.reduce(0) { $0 + $1.redisCommands } }

    /// The counters of worker and redis-server at one moment.
    struct Count {
        /// Nanoseconds.
        var stages: [StageClock.Stage: Double] = [:]
        /// Commands of the worker by operation.
        var operations: [String: Double] = [:]
        var commands: [String: (calls: Double, micros: Double)] = [:]
        var allocations: Double = 0

        init() {}

        /// - Parameter info: redis-server's `INFO commandstats`.
        init(_ metrics: MetricsText, info: String) {
            for stage in StageClock.Stage.work {
                stages[stage] = metrics.sum("carillon_stage_seconds_total", "stage=\"\(stage.name)\"") * 1e9
            }
            for kind in ["read", "owner", "claim", "finish", "change", "other"] {
                operations[kind] = metrics.sum("carillon_redis_command_seconds_count", "op=\"\(kind)\"")
            }
            allocations = metrics.sum("carillon_allocations_total")
            commands = Self.commands(info)
        }

        /// Lines like `cmdstat_get:calls=3,usec=5,usec_per_call=1.67,…`.
        static func commands(_ info: String) -> [String: (calls: Double, micros: Double)] {
            var found: [String: (calls: Double, micros: Double)] = [:]
            for line in info.split(whereSeparator: \.isNewline) where line.hasPrefix("cmdstat_") {
                guard let colon = line.firstIndex(of: ":") else { continue }
                var values: [Substring: Double] = [:]
                for field in line[line.index(after: colon)...].split(separator: ",") {
                    let pair = field.split(separator: "=", maxSplits: 1)
                    if pair.count == 2 { values[pair[0]] = Double(pair[1]) }
                }
                guard let calls = values["calls"], let micros = values["usec"] else { continue }
                found[String(line[line.index(line.startIndex, offsetBy: 8)..<colon])] = (calls, micros)
            }
            return found
        }
    }
}

extension StageCosts {
    /// The difference of two counts, divided by `recipients`.
    init(from start: Count, to end: Count, recipients: Int, usage: Usage) {
        let all = Double(max(1, recipients))
        let stages = StageClock.Stage.work.map { ($0, max(0, (end.stages[$0] ?? 0) - (start.stages[$0] ?? 0))) }
        let sum = max(stages.reduce(0) { $0 + $1.1 }, 1)
        for (stage, nanos) in stages { parts[stage] = Part(workerMicros: nanos / sum * usage.shardNanos / 1000 / all) }
        otherThreadsMicros = usage.otherNanos / 1000 / all
        for (name, last) in end.commands {
            let first = start.commands[name] ?? (0, 0)
            // The bench's own command belongs to no push.
            guard last.calls > first.calls, name != "info" else { continue }
            let micros = (last.micros - first.micros) * usage.redisShare / all
            commands.append(Command(name: name, calls: (last.calls - first.calls) / all, micros: micros))
        }
        commands.sort { ($1.micros, $0.name) < ($0.micros, $1.name) }
        var operations: [String: Double] = [:]
        for (kind, count) in end.operations { operations[kind] = (count - (start.operations[kind] ?? 0)) / all }
        shareRedis(operations)
        let known = parts.values.reduce(0) { $0 + $1.redisMicros }
        redisProtocolMicros = max(0, usage.redisNanos / 1000 / all - known)
        if end.allocations > start.allocations { allocations = (end.allocations - start.allocations) / all }
    }

    /// CPU time of the phase in nanoseconds.
    struct Usage {
        var shardNanos = 0.0
        var otherNanos = 0.0
        var redisNanos = 0.0
        /// Time for which redis-server was runnable but not running.
        var redisDelayNanos = 0.0

        /// The part of its runnable time in which redis-server had the processor.
        var redisShare: Double {
            redisNanos + redisDelayNanos > 0 ? redisNanos / (redisNanos + redisDelayNanos) : 1
        }
    }

    /// Reads that no script of a push uses, so all their calls come from the worker.
    private static let reads = ["hgetall", "hrandfield", "hscan", "hlen", "exists", "get", "mget", "hmget"]
    private static let owners = ["get", "mget"]
    private static let scripts = ["evalsha", "eval", "exec"]
    /// Commands of claims without a script; `hmget` calls that are not reads belong to them.
    private static let plainClaims = ["zadd", "zcard", "hmget"]

    /// Assigns the time of the worker's commands to the stages that send them. If scripts use a command too, the
    /// worker's calls are taken from its own count, at the mean cost.
    private mutating func shareRedis(_ operations: [String: Double]) {
        // Calls that are not assigned to a stage yet.
        var unshared = Dictionary(commands.map { ($0.name, $0.calls) }, uniquingKeysWith: { $1 })
        func micros(_ name: String, calls: Double) -> Double {
            guard let found = commands.first(where: { $0.name == name }), found.calls > 0 else { return 0 }
            return found.micros * calls / found.calls
        }
        func take(_ name: String, atMost most: Double) -> Double {
            let own = min(unshared[name] ?? 0, max(0, most))
            unshared[name, default: 0] -= own
            return own
        }
        var owners = operations["owner"] ?? 0
        for name in Self.owners {
            let own = take(name, atMost: owners)
            owners -= own
            add(.claim, commands: own, micros: micros(name, calls: own))
        }
        var left = operations["read"] ?? 0
        for name in Self.reads {
            let own = take(name, atMost: left)
            left -= own
            add(.lookup, commands: own, micros: micros(name, calls: own))
        }
        var claims = operations["claim"] ?? 0
        for name in Self.scripts {
            let calls = unshared[name] ?? 0
            claims -= calls
            add(.claim, commands: calls, micros: micros(name, calls: calls))
        }
        for name in Self.plainClaims {
            let own = take(name, atMost: claims)
            claims -= own
            add(.claim, commands: own, micros: micros(name, calls: own))
        }
        add(.claim, commands: claims, micros: 0)
        let finished = operations["finish"] ?? 0
        add(.record, commands: finished, micros: micros("set", calls: finished))
        add(.other, commands: left + (operations["change"] ?? 0) + (operations["other"] ?? 0), micros: 0)
    }

    private mutating func add(_ stage: StageClock.Stage, commands: Double, micros: Double) {
        parts[stage, default: Part()].redisCommands += commands
        parts[stage, default: Part()].redisMicros += micros
    }
}
