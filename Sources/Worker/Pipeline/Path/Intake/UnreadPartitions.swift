// SPDX-License-Identifier: Apache-2.0
import Kafka
import Telemetry

/// Partitions that the group has given to nobody, so that their records wait: new ones that no client has noticed.
///
/// The answers come on other threads. A difference counts when two answers in a row have it, because a group that forms again
/// has one for a moment.
final class UnreadPartitions: Sendable {
    private struct State {
        var isAsking = false
        var askedNanos: UInt64?
        /// Topics with such partitions at the last answer.
        var last: Set<String> = []
        var texts: [String] = []
    }

    private let state = Guarded(State())
    /// New partitions are usually shared out in less time.
    static let everyNanos: UInt64 = 30_000_000_000

    /// - Returns: true if the caller must now ask for the shares and then call `learn`.
    func beginAsking(nowNanos: UInt64) -> Bool {
        state.withLock { state in
            if state.isAsking { return false }
            if let asked = state.askedNanos, nowNanos &- asked < Self.everyNanos { return false }
            state.isAsking = true
            state.askedNanos = nowNanos
            return true
        }
    }

    /// - Parameter shares: nil where nobody knows them: what was known stays.
    func learn(_ shares: [TopicShare]?) {
        state.withLock { state in
            state.isAsking = false
            guard let shares else { return }
            let unread = shares.filter { $0.assigned < $0.partitions }
            state.texts = unread.filter { state.last.contains($0.topic) }.map(Self.text)
            state.last = Set(unread.map(\.topic))
        }
    }

    var texts: [String] { state.withLock { $0.texts } }

    private static func text(_ share: TopicShare) -> String {
        "\(share.topic) has \(share.partitions) partitions, and the group reads \(share.assigned) of them: "
            + "the rest waits; restart a worker, so that the group forms again"
    }
}
