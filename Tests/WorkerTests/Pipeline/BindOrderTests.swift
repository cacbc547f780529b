// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@testable import Worker

/// Binds of one token that are in hand at the same time.
struct BindOrderTests {
    private func bind(_ version: Int64, token: String = "aa") -> ChangeJob {
        let record = TokenRecord(hex: token, environment: .production, topic: "t", type: .alert, boundMs: 0)
        let binding = UserState.Binding(device: "d", token: record, version: version)
        return ChangeJob(
            nil,
            .state(UserStateTask(app: "im", sentMs: 0, nowMs: 0, state: UserState(uid: "u", change: .bind(binding)))))
    }

    @Test func `newer binds wait, and the newest of them goes on first`() {
        var order = BindOrder()
        let (first, older, second, newest, last) = (bind(5), bind(4), bind(6), bind(9), bind(7))
        #expect(order.admit(first) == .goesOn)
        #expect(order.admit(older) == .goesOn, "it is stale")
        for job in [second, newest, last] { #expect(order.admit(job) == .kept) }
        #expect(order.admit(bind(8, token: "bb")) == .goesOn, "another token")
        #expect(order.ended(older).isEmpty)
        let next = order.ended(first)
        #expect(next.map { ObjectIdentifier($0) } == [newest, second, last].map { ObjectIdentifier($0) })
        #expect(order.ended(second).isEmpty && order.ended(last).isEmpty)
        #expect(order.admit(bind(10)) == .kept)
        #expect(order.ended(newest).count == 1)
    }

    @Test func `those that wait can be left`() {
        var order = BindOrder()
        let (first, second) = (bind(1), bind(2))
        _ = order.admit(first)
        _ = order.admit(second)
        #expect(order.forget().map { ObjectIdentifier($0) } == [ObjectIdentifier(second)])
        #expect(order.ended(first).isEmpty && order.admit(bind(3)) == .goesOn)
    }
}
