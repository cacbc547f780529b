import YAML

/// One thing that is wrong with the configuration, with its place: `Config/carillon.yaml:12: unknown key "brokerz"`.
public struct Problem: Error, Sendable, Equatable, CustomStringConvertible {
    /// The file, or the variable of the environment.
    public let source: String
    /// From 1; nil where the source has no lines.
    public let line: Int?
    /// What is wrong and how to cure it. Holds no secret.
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

/// All problems of one load, in the order of their places, so that an operator mends the file in one go.
public struct ConfigurationProblems: Error, Sendable, CustomStringConvertible {
    public let problems: [Problem]

    public var description: String { problems.map(\.description).joined(separator: "\n") }
}

/// Where readers put what they find; one load's, one thread's.
final class ProblemList {
    private(set) var problems: [Problem] = []

    func add(_ mark: YAMLNode.Mark, _ text: String) {
        problems.append(Problem(mark, text))
    }

    func add(_ problem: Problem) {
        problems.append(problem)
    }

    /// By file as first met, then by line.
    var sorted: [Problem] {
        var order: [String: Int] = [:]
        for problem in problems where order[problem.source] == nil { order[problem.source] = order.count }
        func place(_ problem: Problem) -> (Int, Int) { (order[problem.source] ?? 0, problem.line ?? 0) }
        return problems.enumerated()
            .sorted { (place($0.element), $0.offset) < (place($1.element), $1.offset) }
            .map(\.element)
    }
}

/// Lexicographic order of a place and the order of finding.
private func < (left: ((Int, Int), Int), right: ((Int, Int), Int)) -> Bool {
    (left.0.0, left.0.1, left.1) < (right.0.0, right.0.1, right.1)
}
