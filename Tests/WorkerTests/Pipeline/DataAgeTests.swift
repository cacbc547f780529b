// SPDX-License-Identifier: Apache-2.0
import Kafka
import Testing

@testable import Worker

/// Which server of Redis returned with older data, as a machine without servers.
@Suite struct DataAgeTests {
    private func loss(_ id: Int64, from ms: Int64, _ offsets: [Int32: Int64] = [:], done: Set<Int32> = [])
        -> StateStore.Loss
    {
        StateStore.Loss(id: id, fromMs: ms, noticedMs: ms + 1000, offsets: offsets, done: done)
    }

    private func beat(_ count: Int64, _ loss: StateStore.Loss? = nil) -> StateStore.Beat {
        StateStore.Beat(count: count, nowMs: 1_000, loss: loss)
    }

    @Test func aBeatCarriesTheCountThatWasSeenThere() {
        var age = DataAge(isCluster: true)
        #expect(age.requests([0, 2], keys: 10).map(\.known) == [nil, nil])
        age.didBeat(0, beat(7))
        age.didBeat(2, beat(9))
        #expect(age.requests([0, 2], keys: 10).map(\.known) == [7, 9])
    }

    @Test func offsetsNamedByCommitsAreComparedOnceByEveryServer() {
        var age = DataAge(isCluster: true)
        age.learn(noted: [3: 700], [0, 1])
        #expect(age.requests([0, 1], keys: 0).map(\.noted) == [[3: 700], [3: 700]])
        age.didBeat(0, beat(1), compared: true)
        #expect(age.requests([0, 1], keys: 0).map(\.noted) == [[:], [3: 700]])
        age.didBeat(1, beat(1), compared: false)
        #expect(age.requests([0, 1], keys: 0).map(\.noted) == [[:], [3: 700]], "a beat of before carried none")
        age.didBeat(1, beat(2, loss(2, from: 90)), compared: true)
        #expect(age.isBehind)
        age.didBeat(1, beat(3))
        #expect(!age.isBehind)
    }

    @Test func offsetsNamedByCommitsAreComparedByTheFirstKnownServers() {
        var age = DataAge(isCluster: true)
        age.learn(noted: [3: 700], [])
        #expect(age.requests([], keys: 0).isEmpty)
        #expect(age.requests([0, 1], keys: 0).map(\.noted) == [[3: 700], [3: 700]])
        age.didBeat(0, beat(1), compared: true)
        #expect(age.requests([0, 1], keys: 0).map(\.noted) == [[:], [3: 700]])
    }

    @Test func aServerThatIsNamedNoMoreIsForgottenUnlessItHasALoss() {
        var age = DataAge(isCluster: true)
        age.didBeat(0, beat(40))
        #expect(age.requests([5], keys: 1000).map(\.server) == [5])
        age.didBeat(5, beat(41, loss(41, from: 1)))
        #expect(age.requests([0], keys: 1000).map(\.server) == [0, 5])
        #expect(age.requests([0], keys: 1000)[0].known == nil)
    }

    /// A missing heartbeat where most keys are gone is the second sign's matter: an operator decides.
    @Test(arguments: [(0, 50), (60, 50), (1_000, 500)])
    func aMissingHeartbeatIsALossWhereHalfOfTheKeysAreThere(_ keys: Int64, _ least: Int64) {
        var age = DataAge()
        age.didBeat(0, beat(3))
        #expect(age.requests([0], keys: keys)[0].leastKeys == least)
    }

    @Test func aPartitionBeginsAtTheLeastOffsetOfAllLosses() {
        var age = DataAge(isCluster: true)
        age.didBeat(0, beat(9, loss(9, from: 5, [0: 70, 1: 80], done: [1])))
        age.didBeat(1, beat(9, loss(8, from: 6, [0: 60, 1: 90])))
        #expect(age.starts([0, 1, 2]) == [0: .offset(60), 1: .offset(90), 2: .earliest])
    }

    @Test func withoutAnOffsetAPartitionBeginsAnHourBeforeTheHeartbeat() {
        var age = DataAge()
        age.didBeat(0, beat(9, loss(9, from: 1_700_000_000_000)))
        #expect(age.starts([4]) == [4: .timeMs(1_699_996_400_000)])
        age.didBeat(0, beat(10, loss(10, from: 0)))
        #expect(age.starts([4]) == [4: .earliest], "older than the first heartbeat")
    }

    @Test func aReplicaWithAnOlderCountIsNotBelievedUntilItBeats() {
        var age = DataAge()
        age.didBeat(0, beat(9))
        age.didLook(0, count: 9)
        #expect(!age.isBehind)
        age.didLook(0, count: 8)
        #expect(age.isBehind)
        age.didLook(0, count: nil)
        #expect(age.isBehind)
        age.didBeat(0, beat(11))
        #expect(!age.isBehind)
    }
}
