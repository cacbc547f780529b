// SPDX-License-Identifier: Apache-2.0
import Console
import Worker

/// Loads a configuration for a command, or prints every problem with its line.
enum ConfigurationLoading {
    /// - Parameter checkingFiles: also reads the credential files: one app at least must have one that can be used.
    static func load(
        _ path: String, environment: [String: String] = Configuration.processEnvironment(), checkingFiles: Bool
    ) -> Configuration? {
        var problems: [Problem] = []
        switch Configuration.load(path: path, environment: environment) {
        case .success(let configuration):
            if checkingFiles, !configuration.hasUsableApp { problems = configuration.credentialProblems() }
            if problems.isEmpty { return configuration }
        case .failure(let fault):
            problems = fault.problems
        }
        for problem in problems { Terminal.err("\(problem)\n") }
        Terminal.err("carillon: \(counted(problems.count, "problem")) in the configuration\n")
        return nil
    }
}
