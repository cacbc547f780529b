import Testing

@testable import APNs

@Suite struct TokenBackoffTests {
    typealias Kind = TokenBackoff.Kind

    let token: DeviceToken
    let other: DeviceToken

    init() throws {
        token = try #require(DeviceToken("aa"))
        other = try #require(DeviceToken("bb"))
    }

    @Test func newestOfATypeWaitsAndOthersAreFree() {
        var backoff = TokenBackoff()
        #expect(backoff.isEmpty && !backoff.holds(token))
        same(
            backoff.refused(token, Kind(.alert), 1, order: 1, dueNanos: 100),
            TokenBackoff.Wait(dueNanos: 100, refusals: 1))
        #expect(backoff.holds(token) && !backoff.holds(other))
        same(
            backoff.came(token, Kind(.alert), 2, order: 2, nowNanos: 10),
            TokenBackoff.Wait(dueNanos: 100, refusals: 1, superseded: 1))
        // Another type is no newer version of an alert.
        same(
            backoff.came(token, Kind(.background), 3, order: 3, nowNanos: 11),
            TokenBackoff.Wait(dueNanos: 100, refusals: 1))
        same(
            backoff.came(token, Kind(.alert), 4, order: 4, nowNanos: 12),
            TokenBackoff.Wait(dueNanos: 100, refusals: 1, superseded: 2))
    }

    @Test func aNumberAloneTakesNoAlertsPlace() {
        var backoff = TokenBackoff()
        _ = backoff.refused(token, Kind(.alert), 1, order: 1, dueNanos: 100)
        same(backoff.came(token, Kind(.alert, .silent), 2, order: 2, nowNanos: 10).superseded, nil)
        same(backoff.came(token, Kind(.alert, .group), 3, order: 3, nowNanos: 10).superseded, 1)
    }

    @Test func olderPushThatIsRefusedLaterIsTheOneThatGives() {
        var backoff = TokenBackoff()
        _ = backoff.refused(token, Kind(.alert), 2, order: 2, dueNanos: 100)
        same(backoff.refused(token, Kind(.alert), 1, order: 1, dueNanos: 200).superseded, 1)
    }

    @Test func oneTriesAndTheOthersHearOfIt() {
        var backoff = TokenBackoff()
        _ = backoff.refused(token, Kind(.alert), 1, order: 1, dueNanos: 100)
        _ = backoff.came(token, Kind(.background), 2, order: 2, nowNanos: 1)
        same(backoff.tries(token, 1), true)
        same(backoff.tries(token, 2), false)
        // While one tries no clock wakes a newcomer.
        same(backoff.came(token, Kind(.alert), 3, order: 3, nowNanos: 101).dueNanos, .max)
        same(Set(backoff.ended(token, 1, isOver: true)), [2, 3])
        #expect(backoff.isEmpty)
    }

    @Test func refusalOfTheOneThatTriesStartsTheWaitAnew() {
        var backoff = TokenBackoff()
        _ = backoff.refused(token, Kind(.alert), 1, order: 1, dueNanos: 100)
        same(backoff.tries(token, 1), true)
        same(
            backoff.refused(token, Kind(.alert), 1, order: 1, dueNanos: 300),
            TokenBackoff.Wait(dueNanos: 300, refusals: 2))
        same(backoff.tries(token, 1), true)
    }

    @Test func lostTryLetsTheNextOneGo() {
        var backoff = TokenBackoff()
        _ = backoff.refused(token, Kind(.alert), 1, order: 1, dueNanos: 100)
        _ = backoff.came(token, Kind(.background), 2, order: 2, nowNanos: 1)
        _ = backoff.tries(token, 1)
        same(backoff.ended(token, 1, isOver: false), [2])
        same(backoff.tries(token, 2), true)
        same(backoff.ended(other, 9, isOver: true), [])
    }

    @Test func longOverIsForgotten() {
        var backoff = TokenBackoff()
        _ = backoff.refused(token, Kind(.alert), 1, order: 1, dueNanos: 100)
        same(backoff.ended(token, 1, isOver: false), [])
        backoff.sweep(nowNanos: 59_000_000_000)
        #expect(!backoff.isEmpty)
        backoff.sweep(nowNanos: 61_000_000_000)
        #expect(backoff.isEmpty)
    }
}
