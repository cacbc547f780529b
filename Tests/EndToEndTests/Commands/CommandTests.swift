// SPDX-License-Identifier: Apache-2.0
import JSON
import Processes
import Support
import Testing

/// The built binary, as a shell sees it.
struct CommandTests {
    private static let names = [
        "run", "check", "explain", "trace", "tail", "send", "user", "record", "replay", "broker", "simulate", "top",
        "man",
    ]

    @Test(arguments: names) func helpListsEveryOption(_ name: String) throws {
        let run = try CommandRun(name, "--help")
        #expect(run.code == 0 && run.output.contains("usage: carillon \(name)") && run.output.contains("exit codes"))
    }

    @Test(arguments: names) func anUnknownOptionIsWrongUsage(_ name: String) throws {
        let run = try CommandRun(name, "--nonsense")
        #expect(run.code == 64 && run.errors.contains("unknown option --nonsense"))
    }

    @Test(arguments: [
        (["chekc"], #"unknown command "chekc" (did you mean "check"?)"#),
        (["check", "--ofline"], "unknown option --ofline (did you mean --offline?)"),
        (["tokens", "restor"], "(did you mean restore?)"),
    ])
    func anUnknownWordIsReportedWithTheNearestKnownOne(_ words: [String], _ told: String) throws {
        let run = try CommandRun(words: words)
        #expect(run.code == 64 && run.errors.contains(told), "\(run.errors)")
    }

    @Test(arguments: [
        ["broker", "--topic", "bad"], ["check", "--config", "c", "--offline", "--probe"],
        ["simulate", "--listen", "x"], ["simulate", "--listen", "127.0.0.1:0"],
        ["record", "--config", "c", "--topic", "t", "--out", "o", "--from", "noon"],
        ["replay", "--config", "c", "--in", "f", "--rate", "0"],
        ["send", "--config", "c", "--app", "im", "--token", "xyz", "--alert", "a"],
        ["tokens", "restore", "--config", "c", "--app", "im", "--cause", "410", "--since", "2026-02-29"],
        ["tokens", "restore", "--config", "c", "--app", "im", "--cause", "bad", "--since", "2026-02-28"],
        ["tokens", "restore", "--config", "c", "--cause", "410", "--since", "2026-02-28"],
        ["tokens", "accept", "--config", "c", "--dry-run"],
        ["dlq", "show", "--config", "c", "--at", "0"], ["dlq", "list", "--config", "c", "--yes"],
        ["dlq", "redrive", "--config", "c", "--yes", "--dry-run"],
    ])
    func aWrongValueIsWrongUsageWithItsCure(_ words: [String]) throws {
        let run = try CommandRun(words: words)
        #expect(run.code == 64 && run.errors.contains("carillon \(words[0]): --"))
    }

    @Test func everyCommandRefusesABadConfigurationWithItsLine() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(Array("kafka: {brkers: x}\n".utf8), to: "c.yaml")
        let calls = [
            ["check", "--offline"], ["explain", "--event", "-"], ["user", "--app", "im", "--user", "u"],
            ["trace", "--app", "im", "--user", "u"], ["tail"],
            ["send", "--app", "im", "--token", "ab", "--alert", "a"], ["record", "--topic", "t", "--out", "-"],
            ["replay", "--in", path], ["tokens", "accept"], ["dlq", "list"],
            ["tokens", "restore", "--app", "im", "--cause", "410", "--since", "2026-02-28T10:00:00.5+08:00"],
        ]
        for call in calls {
            let run = try CommandRun(words: call + ["--config", path])
            #expect(run.code == 78, "\(call)")
            #expect((run.output + run.errors).contains("\(path):1"), "\(call)")
        }
    }

    @Test func aBrokerAnswersOrdersAndQuits() throws {
        let run = try CommandRun(
            "broker", "--brokers", "2", "--topic", "t:3", "--json",
            input: "down 2\nup 2\nrtt 3 5\nerror produce 7\nleader t 0 2\ndance\nquit\n")
        #expect(run.code == 0)
        let lines = try run.lines.map { try JSONTree(parsing: Array($0.utf8)) }
        #expect(lines[0]["bootstrap"]?.string?.split(separator: ",").count == 2)
        #expect(lines[0]["topics"]?[0]?["partitions"]?.int == 3)
        #expect(lines.dropFirst().map { $0["ok"]?.bool } == [true, true, false, true, true, false])
    }
}
