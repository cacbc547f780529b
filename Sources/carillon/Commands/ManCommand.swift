// SPDX-License-Identifier: Apache-2.0
import Console
import Glibc
import Worker

/// `carillon man`: the manual pages.
struct ManCommand: Command {
    static let spec = CommandSpec(
        name: "man", summary: "the manual pages of this program and its commands",
        details: """
            Prints one page, or writes all pages as carillon.1 and carillon-COMMAND.1. `carillon man | man -l -` shows a page. The
            Debian package installs them.

            exit codes: 0 done, 1 the folder cannot be written, 64 bad usage
            """,
        options: [
            .value("command", "NAME", "the page of this command, not of the program"),
            .value("out", "DIR", "writes all pages to this folder"),
        ])

    private let chosen: CommandSpec?
    private let folder: String?

    init(_ arguments: Arguments) throws(Arguments.UsageError) {
        folder = arguments.string("out")
        guard let name = arguments.string("command") else {
            chosen = nil
            return
        }
        if folder != nil { throw Arguments.UsageError(message: "--command and --out exclude each other") }
        chosen = Main.commands.map(\.spec).first { $0.name == name }
        if chosen == nil { throw Arguments.UsageError(message: "--command needs a command; \"\(name)\" is none") }
    }

    func run() async -> ExitCode {
        let specs = Main.commands.map(\.spec)
        let version = WorkerProcess.version
        guard let folder else {
            let page =
                chosen.map { ManualPage.page($0, version: version) } ?? ManualPage.overview(specs, version: version)
            Terminal.out(TerminalText(lines: page))
            return .done
        }
        do throws(FileFault) {
            try write(ManualPage.overview(specs, version: version), to: folder + "/carillon.1")
            for spec in specs {
                try write(ManualPage.page(spec, version: version), to: "\(folder)/carillon-\(spec.name).1")
            }
            return .done
        } catch {
            Terminal.err("carillon man: \(error)\n")
            return .failed
        }
    }

    private func write(_ page: String, to path: String) throws(FileFault) {
        let file = try OutputFile(path: path, isPublic: true)
        try file.write(Array(page.utf8))
        try file.close()
    }
}
