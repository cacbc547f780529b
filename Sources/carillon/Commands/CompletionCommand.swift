// SPDX-License-Identifier: Apache-2.0
import Console

/// `carillon completion`: scripts for command completion in a shell.
struct CompletionCommand: Command {
    static let spec = CommandSpec(
        name: "completion", summary: "bash, zsh: a script that completes commands, options and files",
        details: """
            bash   source <(carillon completion bash), or save the output as a file carillon in
                   /usr/share/bash-completion/completions
            zsh    save the output as a file _carillon in a folder of fpath, such as /usr/share/zsh/vendor-completions

            The Debian package installs both.

            exit codes: 0 done, 64 bad usage
            """,
        verbs: ["bash", "zsh"], options: [])

    private let isZsh: Bool

    init(_ arguments: Arguments) {
        isZsh = arguments.verb == "zsh"
    }

    func run() async -> ExitCode {
        let specs = Main.commands.map(\.spec)
        Terminal.out(TerminalText(lines: isZsh ? CompletionScript.zsh(specs) : CompletionScript.bash(specs)))
        return .done
    }
}
