// SPDX-License-Identifier: Apache-2.0
import EventLoop
import JSON

/// Time by stage over all rounds: the median of each.
struct StageTable {
    /// A line of the table; nil means not applicable.
    struct Row {
        var name: String
        var worker: Double?
        var redis: Double?
        var commands: Double?
    }

    private let rounds: [StageCosts]

    init(_ rounds: [StageCosts]) {
        self.rounds = rounds
    }

    var isEmpty: Bool { rounds.isEmpty }

    static func title(_ stage: StageClock.Stage) -> String {
        switch stage {
        case .redis: "bytes from and to Redis"
        case .other: "the rest of the loop"
        default: stage.name
        }
    }

    /// In the order of a record's path, the sum last.
    var rows: [Row] {
        var rows: [Row] = []
        for stage in StageClock.Stage.work where stage != .other {
            let redis = median { $0.parts[stage]?.redisMicros }
            let commands = median { $0.parts[stage]?.redisCommands }
            rows.append(
                Row(
                    name: Self.title(stage), worker: median { $0.parts[stage]?.workerMicros },
                    redis: redis > 0 ? redis : nil, commands: commands > 0 ? commands : nil))
        }
        rows.append(
            Row(
                name: Self.title(.other), worker: median { $0.parts[.other]?.workerMicros }, redis: nil,
                commands: median { $0.parts[.other]?.redisCommands }))
        rows.append(Row(name: "librdkafka's and other threads", worker: median { $0.otherThreadsMicros }))
        rows.append(Row(name: "Redis: protocol and kernel", redis: median { $0.redisProtocolMicros }))
        return rows
    }

    var sum: Row {
        Row(
            name: "all", worker: rows.reduce(0) { $0 + ($1.worker ?? 0) },
            redis: rows.reduce(0) { $0 + ($1.redis ?? 0) }, commands: median { $0.redisCommands })
    }

    /// The most expensive commands of redis-server, including those inside scripts.
    var commands: [StageCosts.Command] {
        let names = Set(rounds.flatMap { $0.commands.map(\.name) })
        let all = names.map { name in
            StageCosts.Command(
                name: name, calls: median { $0.commands.first { $0.name == name }?.calls },
                micros: median { $0.commands.first { $0.name == name }?.micros })
        }
        return all.filter { $0.micros >= 0.005 }.sorted { ($1.micros, $0.name) < ($0.micros, $1.name) }
    }

    var allocations: Double? { BenchReport.median(rounds.compactMap(\.allocations)) }

    private func median(_ value: (StageCosts) -> Double?) -> Double {
        BenchReport.median(rounds.map { value($0) ?? 0 }) ?? 0
    }

    // MARK: - Text

    /// - Parameter what: `push` or `member`.
    func text(per what: String) -> String {
        var text = "\nwhere it goes, per \(what)           worker µs   Redis µs   commands\n"
        for row in rows + [sum] {
            text += "    " + BenchText.name(row.name, 31)
            text += Self.column(row.worker) + Self.column(row.redis) + Self.column(row.commands) + "\n"
        }
        text += "  redis-server by command (those in scripts are part of evalsha too):\n"
        for command in commands.prefix(12) {
            text += "    " + BenchText.name(command.name, 42)
            text += Self.column(command.micros) + Self.column(command.calls) + "\n"
        }
        if let allocations { text += "  allocations of the worker: \(BenchText.fixed(allocations, digits: 1))\n" }
        return text
    }

    private static func column(_ value: Double?) -> String {
        BenchText.column(value.map { BenchText.fixed($0, digits: 2) } ?? "–")
    }

    // MARK: - JSON

    func write(to writer: inout JSONWriter) {
        writer.objects("stages", rows + [sum]) { writer, row in
            writer.member("name", row.name)
            writer.figures([("worker_us", row.worker), ("redis_us", row.redis), ("redis_commands", row.commands)])
        }
        writer.objects("redis_commands", commands) { writer, command in
            writer.member("name", command.name)
            writer.figures([("calls", command.calls), ("us", command.micros)])
        }
        writer.figure("allocations", allocations)
    }
}
