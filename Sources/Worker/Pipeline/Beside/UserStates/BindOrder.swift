// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore

/// Binds of one token at the same time: one is in hand, and those with newer versions wait for its end. Then the newest of them
/// goes on, and right behind it the others, which find themselves stale. So a token that many users bind at once costs each
/// bind two scripts, and the number of previous owners that a bind asks does not grow with the number of binds in hand.
struct BindOrder {
    private struct Line {
        var first: ChangeJob
        var version: Int64
        var waiting: [(job: ChangeJob, version: Int64)] = []
    }

    private var lines: [UTF8Key: Line] = [:]

    /// - Returns: `.kept` if it waits for `ended`.
    mutating func admit(_ job: ChangeJob) -> Passage {
        guard let (token, version) = job.bind else { return .goesOn }
        guard let line = lines[token] else {
            lines[token] = Line(first: job, version: version)
            return .goesOn
        }
        if version <= line.version { return .goesOn }
        lines[token]?.waiting.append((job, version))
        return .kept
    }

    /// The bind is over, with whatever outcome.
    ///
    /// - Returns: those that go on now, in this order.
    mutating func ended(_ job: ChangeJob) -> [ChangeJob] {
        guard let token = job.bind?.token, let line = lines[token], line.first === job else { return [] }
        var waiting = line.waiting
        guard let newest = waiting.indices.max(by: { waiting[$0].version < waiting[$1].version }) else {
            lines[token] = nil
            return []
        }
        let next = waiting.remove(at: newest)
        lines[token] = Line(first: next.job, version: next.version)
        return [next.job] + waiting.map(\.job)
    }

    /// - Returns: those that waited; nothing waits any more.
    mutating func forget() -> [ChangeJob] {
        defer { lines = [:] }
        return lines.values.flatMap { $0.waiting.map(\.job) }
    }
}

extension ChangeJob {
    /// The token of a bind, and its version.
    fileprivate var bind: (token: UTF8Key, version: Int64)? {
        guard case .state(let change) = self.task, case .bind(let binding) = change.state.change else { return nil }
        return (UTF8Key(change.app + " " + binding.token.hex), binding.version)
    }
}
