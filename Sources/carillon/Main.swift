// SPDX-License-Identifier: Apache-2.0
import Bench
import Console
import Demo
import Digits
import Glibc
import Processes
import Top

@main
struct Main {
    static var commands: [CommandEntry] {
        [
            CommandEntry(RunCommand.self),
            CommandEntry(TopCommand.self),
            CommandEntry(DemoCommand.self),
            CommandEntry(CheckCommand.self),
            CommandEntry(ExplainCommand.self),
            CommandEntry(TraceCommand.self),
            CommandEntry(TailCommand.self),
            CommandEntry(StatsCommand.self),
            CommandEntry(SendCommand.self),
            CommandEntry(ChannelCommand.self),
            CommandEntry(UserCommand.self),
            CommandEntry(TokensCommand.self),
            CommandEntry(RecordCommand.self),
            CommandEntry(ReplayCommand.self),
            CommandEntry(GenerateCommand.self),
            CommandEntry(DLQCommand.self),
            CommandEntry(BenchCommand.self),
            CommandEntry(BrokerCommand.self),
            CommandEntry(SimulateCommand.self),
            CommandEntry(CompletionCommand.self),
            CommandEntry(ManCommand.self),
        ]
    }

    static func main() async {
        // Writing to a closed connection must fail the call, not end the process.
        signal(SIGPIPE, SIG_IGN)
        exit(await dispatch(Array(CommandLine.arguments.dropFirst())).rawValue)
    }

    static func dispatch(_ words: [String]) async -> ExitCode {
        guard let name = words.first, name != "--help", name != "help" else {
            Terminal.out(TerminalText(lines: overview))
            return words.isEmpty ? .usage : .done
        }
        if name == "--version" { return version(Array(words.dropFirst())) }
        guard let command = commands.first(where: { $0.spec.name == name }) else {
            if let near = NearestWord.to(name, among: commands.map(\.spec.name)) {
                Terminal.err("carillon: unknown command \"\(name)\" (did you mean \"\(near)\"?)\n")
            } else {
                Terminal.err("carillon: unknown command \"\(name)\"\n\n\(TerminalText(lines: overview))")
            }
            return .usage
        }
        let rest = Array(words.dropFirst())
        if rest.contains("--help") {
            Terminal.out(TerminalText(lines: command.spec.help))
            return .done
        }
        do throws(Arguments.UsageError) {
            return try await command.perform(try Arguments(rest, spec: command.spec))
        } catch {
            Terminal.err("carillon \(name): \(error.message)\n\(command.spec.usage)\n")
            return .usage
        }
    }

    private static func version(_ words: [String]) -> ExitCode {
        guard words.isEmpty || words == ["--json"] else {
            Terminal.err("carillon --version: only --json can be combined with it\n")
            return .usage
        }
        Terminal.out(asJSON: !words.isEmpty, json: VersionReport.json, text: VersionReport.text)
        return .done
    }

    static var overview: String {
        let width = (commands.map(\.spec.name.count).max() ?? 0) + 2
        var text =
            "Carillon pushes an IM platform's messages to Apple devices.\n\nusage: carillon <command> [options]\n\n"
        for command in commands {
            let name = command.spec.name
            text += "  " + name + String(repeating: " ", count: width - name.count) + command.spec.summary + "\n"
        }
        return text + "\n`carillon <command> --help` lists the options of each, `carillon --version` all versions.\n"
    }
}
