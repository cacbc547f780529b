// SPDX-License-Identifier: Apache-2.0
import Foundation
import JSON
import Processes
import Testing

/// What the command table gives to shells, manuals and bug reports.
struct ShellTests {
    /// The names of all commands, as the program lists them.
    private static func commands() throws -> [String] {
        try CommandRun("--help").lines.filter { $0.hasPrefix("  ") }.compactMap {
            $0.split(separator: " ").first.map(String.init)
        }
    }

    private static func run(_ program: String, _ words: [String]) throws -> [String] {
        let folder = try TemporaryFolder()
        let script = #"out="$1"; shift; exec "$@" >"$out" 2>&1"#
        let process = try FinishedProcess.run("sh", ["-c", script, "sh", folder.file("out"), program] + words)
        let text = String(decoding: try readFile(folder.file("out")), as: UTF8.self)
        guard process.exitCode == 0 else { throw SetupFault("\(program): \(text)") }
        return text.split(separator: "\n").map(String.init).sorted()
    }

    // MARK: - Versions

    @Test func theVersionListsEveryLibrarysVersion() throws {
        let run = try CommandRun("--version", "--json")
        let report = try JSONTree(parsing: Array(run.output.utf8))
        #expect(run.code == 0 && report["version"]?.string?.split(separator: ".").count == 3)
        #expect(["debug", "release", "trained"].contains(report["build"]?.string))
        let libraries = report["libraries"]?.array ?? []
        let names = Set(libraries.compactMap { $0["name"]?.string })
        for name in ["librdkafka", "hiredis", "nghttp2", "OpenSSL", "libevent", "simdjson", "libyaml", "zstd"] {
            #expect(names.contains(name))
        }
        for library in libraries {
            let version = library["version"]?.string ?? ""
            #expect(version.first?.isNumber == true && version.contains("."), "\(library)")
        }
        #expect(
            libraries.filter { $0["asked"]?.bool == false }.compactMap { $0["name"]?.string } == [
                "hiredis", "simdjson",
            ])
        let people = try CommandRun("--version")
        #expect(people.code == 0 && people.lines.count == libraries.count + 2)
        #expect(try CommandRun("--version", "--nonsense").code == 64)
    }

    // MARK: - Completion

    /// Words of a line, the last of which is completed, and what is offered.
    private static let lines: [(line: [String], offers: [String])] = [
        (["carillon", "dl"], ["dlq"]), (["carillon", "dlq", "s"], ["show"]),
        (["carillon", "dlq", "list", "--rea"], ["--reason"]), (["carillon", "dlq", "show", "--reason", ""], []),
        (["carillon", "run", "--config", "conf"], ["config.yaml"]),
        (["carillon", "demo", "--world", "wor"], ["world", "world.txt"]),
        (["carillon", "man", "--out", "wor"], ["world"]),
        // Only what may be repeated is offered again.
        (["carillon", "record", "--topic", "t", "--topi"], ["--topic"]),
        (["carillon", "record", "--config", "c", "--confi"], []), (["carillon", "nonsense", "--c"], []),
    ]

    private static func inFolder(_ body: (TemporaryFolder) throws -> [String]) throws -> [String] {
        let folder = try TemporaryFolder()
        try folder.write([], to: "config.yaml")
        try folder.write([], to: "world.txt")
        try FileManager.default.createDirectory(atPath: folder.file("world"), withIntermediateDirectories: false)
        return try body(folder)
    }

    @Test(arguments: lines) func bashCompletesFromTheCommandTable(_ row: (line: [String], offers: [String])) throws {
        let offered = try Self.inFolder { folder in
            let script = """
                source "$1"; cd "$2"; shift 2
                COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _carillon
                ((${#COMPREPLY[@]})) && printf '%s\\n' "${COMPREPLY[@]}"; true
                """
            let source = try folder.write(Array(try CommandRun("completion", "bash").output.utf8), to: "source")
            return try Self.run("bash", ["--norc", "-c", script, "bash", source, folder.path] + row.line)
        }
        #expect(offered == row.offers)
    }

    @Test func bashCompletesBehindAnEqualsSignToo() throws {
        let script = """
            source <("$1" completion bash); cd "$2"
            COMP_WORDS=(carillon run --config = con); COMP_CWORD=4; _carillon; printf '%s\\n' "${COMPREPLY[@]}"
            """
        let offered = try Self.inFolder {
            try Self.run("bash", ["--norc", "-c", script, "bash", CommandRun.binary.path, $0.path])
        }
        #expect(offered == ["config.yaml"])
    }

    /// A shell on a terminal of its own, with all that it offers for a line said before it is shown.
    private static let zsh = #"""
        cd $1
        cat >rc.zsh <<EOR
        PS1=
        fpath=($1 \$fpath)
        autoload -Uz compinit; compinit -D -u
        zstyle ':completion:*' verbose no
        compadd() {
          if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "\$@"; return \$?; fi
          local -a hits; builtin compadd -A hits "\$@"
          (( \$#hits )) && print -rl -- "hit:"\${^hits}
          builtin compadd "\$@"
        }
        complete-it() { print; zle complete-word; print -r -- "EN""D" }
        zle -N complete-it; bindkey '^I' complete-it
        print -r -- "REA""DY"
        EOR
        zmodload zsh/zpty
        zpty shell zsh -f -i
        zpty -w shell "stty -echo; source $1/rc.zsh"
        local out
        zpty -r -m shell out '*READY*'
        zpty -w -n shell "$2"$'\t'
        zpty -r -m shell out '*END*'
        print -r -- "$out" | tr -d '\r' | sed -n 's/^.*hit://p' | sort -u
        zpty -d shell
        """#

    @Test(arguments: lines) func zshCompletesFromTheCommandTable(_ row: (line: [String], offers: [String])) throws {
        // Words that it knows nothing of it completes as files.
        if row.line[1] == "nonsense" { return }
        let offered = try Self.inFolder { folder in
            try folder.write(Array(try CommandRun("completion", "zsh").output.utf8), to: "_carillon")
            let script = try folder.write(Array(Self.zsh.utf8), to: "capture.zsh")
            return try Self.run("zsh", ["-f", script, folder.path, row.line.joined(separator: " ")])
        }
        #expect(offered == row.offers)
    }

    @Test func everyOptionIsOfferedByBothShells() throws {
        for shell in ["bash", "zsh"] {
            let script = try CommandRun("completion", shell).output
            for command in try Self.commands() {
                let help = try CommandRun(command, "--help").lines
                let options = help.filter { $0.hasPrefix("  --") }.compactMap { $0.split(separator: " ").first }
                #expect(!options.isEmpty && options.allSatisfy { script.contains($0) }, "\(shell) \(command)")
            }
        }
    }

    // MARK: - Manual pages

    @Test func everyCommandHasAPageWithItsOptions() throws {
        let folder = try TemporaryFolder()
        #expect(try CommandRun("man", "--out", folder.path).code == 0)
        let names = try Self.commands()
        let whole = String(decoding: try readFile(folder.file("carillon.1")), as: UTF8.self)
        for name in names {
            #expect(whole.contains("carillon\\-\(name)"))
            let page = String(decoding: try readFile(folder.file("carillon-\(name).1")), as: UTF8.self)
            for part in [".TH \"CARILLON\\-\(name.uppercased())\" 1", ".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS"] {
                #expect(page.contains(part), "\(name) \(part)")
            }
            let one = try CommandRun("man", "--command", name)
            #expect(one.code == 0 && one.output == page)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == names.count + 1)
        #expect(try CommandRun("man", "--command", "nonsense").code == 64)
        #expect(try CommandRun("man", "--out", folder.file("nowhere")).code == 1)
    }
}
