// SPDX-License-Identifier: Apache-2.0
/// Since when each problem of a process is known.
struct ProblemTimes {
    private struct Key: Hashable {
        let part: ProcessPart.Name
        /// The alert of the problem, whose figures change; without one its text.
        let cause: String
    }

    private var known: [Key: Int64] = [:]
    private var seen: [Key: Int64] = [:]
    private var nowMs: Int64 = 0

    /// Begins a look at all problems. Those that the look before did not see are over.
    mutating func begin(nowMs: Int64) {
        self.nowMs = nowMs
        known = seen
        seen = [:]
    }

    /// Unix ms.
    mutating func since(_ problem: ProcessPart.Problem, of part: ProcessPart.Name) -> Int64 {
        let key = Key(part: part, cause: problem.alert ?? problem.text)
        let since = known[key] ?? nowMs
        seen[key] = since
        return since
    }
}
