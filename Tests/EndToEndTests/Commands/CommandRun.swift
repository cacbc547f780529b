// SPDX-License-Identifier: Apache-2.0
import Foundation
import Processes

/// One run of the built `carillon`, with what it printed and how it ended.
struct CommandRun {
    var code: Int32
    var output: String
    var errors: String

    /// - Parameter input: its standard input, whole.
    init(_ words: String..., input: String = "") throws {
        try self.init(words: words, input: input)
    }

    init(words: [String], input: String = "") throws {
        let folder = try TemporaryFolder()
        try folder.write(Array(input.utf8), to: "in")
        let script = #"exec "$@" <"$0/in" >"$0/out" 2>"$0/err""#
        let process = try FinishedProcess.run("sh", ["-c", script, folder.path, Self.binary.path] + words)
        code = process.exitCode ?? -1
        output = String(decoding: try Data(contentsOf: URL(fileURLWithPath: folder.file("out"))), as: UTF8.self)
        errors = String(decoding: try Data(contentsOf: URL(fileURLWithPath: folder.file("err"))), as: UTF8.self)
    }

    /// The one that lies beside the tests' own program, or the one that `CARILLON_BINARY` names, for example a trained one.
    static let binary: URL = {
        if let path = ProcessInfo.processInfo.environment["CARILLON_BINARY"] { return URL(fileURLWithPath: path) }
        let own = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        return own.deletingLastPathComponent().appendingPathComponent("carillon")
    }()

    var lines: [String] { output.split(separator: "\n").map(String.init) }
}
