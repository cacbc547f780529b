import Foundation

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
        let process = Process()
        process.executableURL = Self.binary
        process.arguments = words
        let (standardInput, output, errors) = (Pipe(), Pipe(), Pipe())
        process.standardInput = standardInput
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        try standardInput.fileHandleForWriting.write(contentsOf: Data(input.utf8))
        try standardInput.fileHandleForWriting.close()
        // What these commands print fits into a pipe, so one may be read after the other.
        self.output = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        self.errors = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        code = process.terminationStatus
    }

    /// The tests' own program lies beside it.
    static let binary: URL = {
        let own = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        return own.deletingLastPathComponent().appendingPathComponent("carillon")
    }()

    var lines: [String] { output.split(separator: "\n").map(String.init) }
}
