// SPDX-License-Identifier: Apache-2.0
import Processes

/// The limits of `Tests/Cases/limits.txt`: what an operation may cost.
public enum Limits {
    /// - Parameter name: such as `allocations: a decision`.
    public static func limit(_ name: String) throws -> Double {
        for line in try Cases.text("limits.txt").split(separator: "\n") where line.hasPrefix(name + " ") {
            if let last = line.split(separator: " ").last, let limit = Double(last) { return limit }
        }
        throw SetupFault("Tests/Cases/limits.txt has no line for \(name)")
    }
}
