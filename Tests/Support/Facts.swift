// SPDX-License-Identifier: Apache-2.0
import Telemetry

/// Facts that code under test records from any thread and a test awaits, in place of sleeping and looking.
///
/// Facts come out in the order they were recorded. Waiting has a limit, so that a fact that never comes fails one test.
public final class Facts<Fact: Sendable>: Sendable {
    /// The awaited fact did not come; holds the facts that were waiting instead, as text.
    public struct Missing: Error, CustomStringConvertible {
        public let description: String
    }

    private struct Waiter {
        var id: UInt64
        var matches: @Sendable (Fact) -> Bool
        var continuation: CheckedContinuation<Fact?, Never>
    }

    private struct State {
        var waiting: [Fact] = []
        var all: [Fact] = []
        var waiters: [Waiter] = []
        var lastID: UInt64 = 0
    }

    private let state = Guarded(State())

    public init() {}

    /// Tells a fact.
    public func record(_ fact: Fact) {
        let woken: Waiter? = state.withLock { state in
            state.all.append(fact)
            guard let index = state.waiters.firstIndex(where: { $0.matches(fact) }) else {
                state.waiting.append(fact)
                return nil
            }
            return state.waiters.remove(at: index)
        }
        woken?.continuation.resume(returning: fact)
    }

    /// Everything recorded so far.
    public var all: [Fact] { state.withLock { $0.all } }

    /// The next fact that was not taken yet.
    public func next() async throws -> Fact { try await first { _ in true } }

    /// The next fact that matches; it is taken, others stay.
    public func first(where matches: @escaping @Sendable (Fact) -> Bool) async throws -> Fact {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        let alarm = Task { [weak self] in
            try? await Task.sleep(for: Patience.duration)
            self?.giveUp(id)
        }
        defer { alarm.cancel() }
        let found: Fact? = await withCheckedContinuation { continuation in
            let present: Fact? = state.withLock { state in
                if let index = state.waiting.firstIndex(where: matches) { return state.waiting.remove(at: index) }
                state.waiters.append(Waiter(id: id, matches: matches, continuation: continuation))
                return nil
            }
            if let present { continuation.resume(returning: present) }
        }
        if let found { return found }
        throw Missing(description: "no such fact within \(Patience.duration); recorded: \(all.suffix(20))")
    }

    private func giveUp(_ id: UInt64) {
        let late: Waiter? = state.withLock { state in
            guard let index = state.waiters.firstIndex(where: { $0.id == id }) else { return nil }
            return state.waiters.remove(at: index)
        }
        late?.continuation.resume(returning: nil)
    }
}
