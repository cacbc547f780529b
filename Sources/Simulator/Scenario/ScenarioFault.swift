// SPDX-License-Identifier: Apache-2.0
/// All problems of a scenario file, each with its path.
public struct ScenarioFault: Error, Equatable, CustomStringConvertible {
    /// One line per problem, `rules[2].fault.kind: …`.
    public let problems: [String]

    public var description: String { problems.joined(separator: "\n") }
}
