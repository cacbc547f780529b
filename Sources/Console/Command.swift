// SPDX-License-Identifier: Apache-2.0
/// One command of the command line: a type in a file of its own.
public protocol Command {
    static var spec: CommandSpec { get }
    init(_ arguments: Arguments) throws(Arguments.UsageError)
    func run() async -> ExitCode
}

/// A command in the table of all commands.
public struct CommandEntry {
    public let spec: CommandSpec
    /// Checks the arguments' meaning and runs the command.
    public let perform: (Arguments) async throws(Arguments.UsageError) -> ExitCode

    public init<Chosen: Command>(_ command: Chosen.Type) {
        spec = Chosen.spec
        perform = { (arguments) async throws(Arguments.UsageError) in
            let command = try Chosen(arguments)
            return await command.run()
        }
    }
}

/// Contract section 7.
public enum ExitCode: Int32, Sendable, CaseIterable {
    case done = 0
    /// The command ran and its finding is bad (`check` with problems, a push that was not accepted).
    case failed = 1
    case usage = 64
    case fatalKafka = 70
    /// Not drained in time, or a port is taken. Another start may succeed.
    case tryAgain = 75
    case configuration = 78
}
