// SPDX-License-Identifier: Apache-2.0
import YAML

/// One problem of the configuration with its position: `Config/carillon.yaml:12: unknown key "brokerz"`.
public struct Problem: Error, Sendable, Equatable, CustomStringConvertible {
    /// The file, or the environment variable.
    public let source: String
    /// From 1; nil if the source has no lines.
    public let line: Int?
    /// The fault and its cure. Contains no secret.
    public let text: String

    public init(source: String, line: Int?, text: String) {
        self.source = source
        self.line = line
        self.text = text
    }

    init(_ mark: YAMLNode.Mark, _ text: String) {
        self.init(source: mark.source, line: mark.line > 0 ? mark.line : nil, text: text)
    }

    public var description: String {
        line.map { "\(source):\($0): \(text)" } ?? "\(source): \(text)"
    }
}

/// All problems of one load in the order of their positions, so that an operator can correct them in one edit.
public struct ConfigurationProblems: Error, Sendable, CustomStringConvertible {
    public let problems: [Problem]

    public var description: String { problems.map(\.description).joined(separator: "\n") }

    package init(problems: [Problem]) { self.problems = problems }
}

/// Collects problems; for one load and one thread.
final class ProblemList {
    private(set) var problems: [Problem] = []
    /// What does not prevent a start, such as keys that have no effect any more.
    private(set) var warnings: [Problem] = []

    func add(_ mark: YAMLNode.Mark, _ text: String) {
        problems.append(Problem(mark, text))
    }

    func warn(_ mark: YAMLNode.Mark, _ text: String) {
        warnings.append(Problem(mark, text))
    }

    func add(_ problem: Problem) {
        problems.append(problem)
    }

    /// By file in order of first use, then by line.
    var sorted: [Problem] {
        var order: [String: Int] = [:]
        for problem in problems where order[problem.source] == nil { order[problem.source] = order.count }
        func place(_ problem: Problem) -> (Int, Int) { (order[problem.source] ?? 0, problem.line ?? 0) }
        return problems.enumerated()
            .sorted { (place($0.element), $0.offset) < (place($1.element), $1.offset) }
            .map(\.element)
    }
}

/// Lexicographic order of position and order of discovery.
private func < (left: ((Int, Int), Int), right: ((Int, Int), Int)) -> Bool {
    (left.0.0, left.0.1, left.1) < (right.0.0, right.0.1, right.1)
}
