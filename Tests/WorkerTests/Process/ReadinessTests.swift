// SPDX-License-Identifier: Apache-2.0
import Fleet
import Kafka
import Telemetry
import Testing

@testable import Worker

/// `/readyz` by what the shards tell (contract section 9).
@Suite struct ReadinessTests {
    static func client(
        _ app: String, sandbox: Bool = false, _ change: (inout ShardStatus.Client) -> Void = { _ in }
    ) -> ShardStatus.Client {
        var client = ShardStatus.Client(
            app: app, environment: sandbox ? "sandbox" : "production", isDefault: !sandbox, host: "h", isUsable: true,
            isBreakerOpen: false, pausedBecause: nil, connections: 1, inFlight: 0, queued: 0)
        change(&client)
        return client
    }

    static func shard(
        _ clients: [ShardStatus.Client], index: Int = 0, _ change: (inout ShardStatus) -> Void = { _ in }
    ) -> ShardStatus {
        var shard = ShardStatus(
            index: index, assignedPartitions: 4, pausedPartitions: 0, kafkaReach: .whole, isRedisReady: true,
            redisFault: nil, redisRefusal: nil, owedClaims: 0, hasLostTokens: false, pendingRecords: 0,
            pendingRecipients: 0, parkedRecords: 0, overShare: [], settledRecords: 0, clients: clients, apps: [],
            brakes: [], endToEnd: [Histogram(bounds: [1])])
        shard.heldPartitions = 4
        change(&shard)
        return shard
    }

    private static func unavailable(_ client: inout ShardStatus.Client) { client.isBreakerOpen = true }
    private static func unconnected(_ client: inout ShardStatus.Client) { client.isUsable = false }
    private static func refused(_ client: inout ShardStatus.Client) {
        client.isUsable = false
        client.pausedBecause = "InvalidProviderToken"
    }

    @Test func eachPartHasALineAndAllWellIsReady() {
        let well = ProcessSnapshot(shards: [Self.shard([Self.client("im"), Self.client("im", sandbox: true)])])
        #expect(well.isReady)
        #expect(well.lines == ["kafka: ok", "redis: ok", "app im production: ok", "app im sandbox: ok"])
        #expect(ProcessSnapshot().lines == ["starting"] && !ProcessSnapshot().isReady)
    }

    @Test func anUnusedEnvironmentIsHidden() {
        let sandbox = Self.client("im", sandbox: true) {
            $0.isUsable = false
            $0.connections = 0
        }
        let snapshot = ProcessSnapshot(shards: [Self.shard([Self.client("im"), sandbox])])
        #expect(snapshot.lines == ["kafka: ok", "redis: ok", "app im production: ok"] && snapshot.health == .ok)
        var failed = sandbox
        failed.unusableBecause = "refused"
        #expect(ProcessSnapshot(shards: [Self.shard([failed])]).lines.last == "app im sandbox: ok")
    }

    @Test func anAppWithConnectionsThatCarryNothingIsDegradedThoughItIsTheOnlyOne() {
        let client = Self.client("im") {
            $0.isUsable = false
            $0.isStalled = true
            $0.unusableBecause = "APNs allows no streams"
        }
        let stuck = ProcessSnapshot(shards: [Self.shard([client])])
        #expect(stuck.isReady)
        #expect(
            stuck.lines.first
                == "app im production: degraded: connections to APNs carry no push: APNs allows no streams")
    }

    @Test func missingTimeZonesAreANote() {
        let snapshot = ProcessSnapshot(shards: [Self.shard([Self.client("im")])], lacksZones: true)
        #expect(snapshot.isReady && snapshot.lines.first == "configuration: degraded: \(SystemZones.absence)")
        #expect(!SystemZones(directory: "/nowhere").isPresent && SystemZones().isPresent)
    }

    @Test func aDrainingProcessIsNotReadyAndStillListsItsParts() {
        let ending = ProcessSnapshot(shards: [Self.shard([Self.client("im")])], isDraining: true)
        #expect(!ending.isReady && ending.missing == ["draining"])
        #expect(ending.lines == ["draining", "kafka: ok", "redis: ok", "app im production: ok"])
    }

    @Test func kafkaIsDownWithoutABrokerOrAPartitionAndDegradedWithoutSomeLeader() {
        func part(_ reaches: KafkaReach..., partitions: Int = 4) -> String? {
            let shards = reaches.enumerated().map { index, reach in
                Self.shard([Self.client("im")], index: index) {
                    $0.kafkaReach = reach
                    $0.assignedPartitions = partitions
                    $0.heldPartitions = partitions
                }
            }
            return ProcessSnapshot(shards: shards).lines.first
        }
        #expect(part(.whole, .unknown) == "kafka: ok")
        #expect(part(.none, .none) == "kafka: down: no broker answers")
        #expect(part(.none, .whole) == "kafka: degraded: brokers do not answer about every partition")
        #expect(part(.whole, .partial) == "kafka: degraded: brokers do not answer about every partition")
        #expect(part(.whole, partitions: 0) == "kafka: down: no partition is assigned")
        #expect(part(.none, partitions: 0) == "kafka: down: no broker answers, so no partition is assigned")
    }

    @Test func aTopicThatRefusesRecordsIsDegraded() {
        let shard = Self.shard([Self.client("im")]) {
            $0.refusedTopics = [ShardStatus.RefusedTopic(topic: "push.results", why: "_STATE")]
        }
        #expect(
            ProcessSnapshot(shards: [shard]).lines.first
                == "kafka: degraded: refuses records of push.results: _STATE; they are sent again")
    }

    @Test func `an app without a usable credential is down, and the process is ready`() {
        let shard = Self.shard([
            Self.client("im"),
            Self.client("shop") {
                $0.isUsable = false
                $0.lacksCredential = true
                $0.refusedCredential = "shop.p12 has ended"
            },
        ])
        let snapshot = ProcessSnapshot(shards: [shard])
        #expect(snapshot.isReady && snapshot.health == .degraded)
        #expect(
            snapshot.lines.first
                == "app shop production: down: a credential cannot be used: shop.p12 has ended; pushes wait for it")
    }

    @Test func `a worker that may write nothing is down and says which right is missing`() {
        let shard = Self.shard([Self.client("im")]) { $0.writeDenial = "Cluster authorization failed" }
        let snapshot = ProcessSnapshot(shards: [shard])
        #expect(!snapshot.isReady)
        #expect(
            snapshot.lines.first?.hasPrefix(
                "kafka: down: may write no record: Cluster authorization failed; grant Write on the output topics")
                == true)
    }

    @Test func aTopicThatBeganAgainAtALowerOffsetIsDegraded() {
        let shards = (0..<2).map { index in
            Self.shard([Self.client("im")], index: index) { $0.restartedTopics = ["im.events"] }
        }
        let snapshot = ProcessSnapshot(shards: shards)
        #expect(snapshot.isReady)
        #expect(
            snapshot.lines.first
                == "kafka: degraded: began again at a lower offset, and is read from there: im.events")
    }

    @Test func aWorkerWithPartitionsOfItsOwnTopicsAloneHasWork() {
        let shard = Self.shard([Self.client("im")]) {
            $0.assignedPartitions = 0
            $0.heldPartitions = 3
        }
        #expect(ProcessSnapshot(shards: [shard]).lines.first == "kafka: ok")
    }

    /// A rollout that goes on now makes the group share out anew while it is still doing so.
    @Test func aWorkerIsNotReadyBeforeTheGroupHasSaidWhoReadsEachOfItsTopics() {
        let first = Self.shard([Self.client("im")]) { $0.awaitedTopics = ["im.user-state", "carillon.parked"] }
        let second = Self.shard([Self.client("im")], index: 1) { $0.awaitedTopics = ["im.user-state"] }
        let snapshot = ProcessSnapshot(shards: [first, second])
        #expect(
            snapshot.missing == ["kafka: down: not shared out yet by the group: im.user-state, carillon.parked"])
        let surplus = Self.shard([Self.client("im")], index: 1) { $0.heldPartitions = 0 }
        #expect(ProcessSnapshot(shards: [Self.shard([Self.client("im")]), surplus]).isReady, "the other shard has all")
    }

    @Test func aChangedCredentialThatIsNotInUseIsANote() {
        let snapshot = ProcessSnapshot(
            shards: [Self.shard([Self.client("im") { $0.refusedCredential = "k.p8: no PEM" }])])
        #expect(snapshot.isReady)
        #expect(
            snapshot.notes == [
                "app im production: degraded: a changed credential is not in use, the one before stays: k.p8: no PEM"
            ])
    }

    @Test func oneAppsTroubleIsDegradedAndTheProcessStaysReady() {
        let ways: [((inout ShardStatus.Client) -> Void, String)] = [
            (Self.refused, "APNs refuses the credential: InvalidProviderToken; the app's pushes wait"),
            (Self.unavailable, "APNs reports that it is unavailable"), (Self.unconnected, "no connection to APNs"),
        ]
        for (change, why) in ways {
            let snapshot = ProcessSnapshot(shards: [Self.shard([Self.client("im"), Self.client("guest", change)])])
            #expect(snapshot.isReady)
            #expect(snapshot.notes == ["app guest production: degraded: \(why)"])
        }
        // A key that is refused is no outage of APNs, if it is the only one.
        #expect(ProcessSnapshot(shards: [Self.shard([Self.client("im", Self.refused)])]).isReady)
    }

    @Test func whereNoAppCanPushAPNsIsAwayAndTheProcessIsNotReady() {
        let away = ProcessSnapshot(shards: [
            Self.shard([Self.client("im", Self.unavailable), Self.client("guest", Self.unconnected)])
        ])
        #expect(
            away.missing == [
                "app guest production: down: no connection to APNs",
                "app im production: down: APNs reports that it is unavailable",
            ])
        let refusedToo = ProcessSnapshot(shards: [
            Self.shard([Self.client("im", Self.unavailable), Self.client("guest", Self.refused)])
        ])
        #expect(refusedToo.missing == ["app im production: down: APNs reports that it is unavailable"])
        let elsewhere = ProcessSnapshot(shards: [
            Self.shard([Self.client("im", Self.unconnected)]), Self.shard([Self.client("im")], index: 1),
        ])
        #expect(elsewhere.isReady, "another shard has a connection")
    }

    @Test func theReasonForAMissingConnectionIsReported() {
        let away = ProcessSnapshot(shards: [
            Self.shard([
                Self.client("im") {
                    $0.isUsable = false
                    $0.unusableBecause = "refused: h:443"
                }
            ])
        ])
        #expect(away.missing == ["app im production: down: no connection to APNs: refused: h:443"])
    }

    @Test func aRefusedReloadIsANoteWhileTheFileCannotBeUsed() {
        let shards = [Self.shard([Self.client("im")])]
        let refused = ProcessSnapshot(shards: shards, isReloadRefused: true)
        #expect(refused.isReady && refused.notes.count == 1)
        #expect(refused.lines.first?.hasPrefix("configuration: degraded: the file cannot be used") == true)
        #expect(!ProcessSnapshot(shards: shards).lines.contains { $0.hasPrefix("configuration") })
        #expect(ProcessSnapshot(isReloadRefused: true).lines == ["starting"])
    }

    @Test func theOtherEnvironmentIsMissedOnlyWhereSomethingWaitsForIt() {
        func line(_ change: @escaping (inout ShardStatus.Client) -> Void) -> String? {
            let sandbox = Self.client("im", sandbox: true, change)
            return ProcessSnapshot(shards: [Self.shard([Self.client("im"), sandbox])]).lines.first {
                $0.contains("sandbox")
            }
        }
        #expect(line(Self.unconnected) == nil)
        let waiting = line {
            $0.isUsable = false
            $0.queued = 3
        }
        #expect(waiting == "app im sandbox: degraded: no connection to APNs")
    }

    @Test func liveProblemsComeFirstAndEachHasItsTime() {
        // 14:02:11 of a day.
        let beganMs: Int64 = 20_000 * 86_400_000 + 50_531_000
        var times = ProblemTimes()
        func lines(_ nowMs: Int64, _ change: (inout ShardStatus) -> Void = { _ in }) -> [String] {
            var notes = HealthWorld.notes(rejected: 900)
            for index in notes.indices { notes[index].endedMs = nowMs - 40_000 }
            let shard = Self.shard([Self.client("im"), Self.client("late", Self.unavailable)], change)
            var snapshot = ProcessSnapshot(shards: [shard], notes: notes)
            snapshot.date(by: &times, nowMs: nowMs)
            return snapshot.lines
        }
        let live = "app late production: degraded: APNs reports that it is unavailable (since 14:02:11)"
        let ended =
            "app im production: degraded: APNs accepted only 10 % of 1000 pushes in the last 3 min, most by Unregistered (ended 40 s ago)"
        #expect(lines(beganMs) == [live, ended, "kafka: ok", "redis: ok"])
        let later = lines(beganMs + 60_000) { $0.isRedisReady = false }
        #expect(later.first == "redis: down: no connection to Redis (since 14:03:11)")
        #expect(later.dropFirst().first == live, "it is known since then")
        // Another day needs its date.
        #expect(lines(beganMs + 86_400_000)[0].hasSuffix("(since 2024-10-04T14:02:11)"))
    }

    @Test func aProblemThatReturnsBeginsAnew() {
        var times = ProblemTimes()
        func line(_ nowMs: Int64, isDown: Bool) -> String? {
            var snapshot = ProcessSnapshot(shards: [Self.shard([Self.client("im")]) { $0.isRedisReady = !isDown }])
            snapshot.date(by: &times, nowMs: nowMs)
            return snapshot.lines.first
        }
        #expect(line(1_000, isDown: true)?.hasSuffix("(since 00:00:01)") == true)
        #expect(line(2_000, isDown: false) == "kafka: ok")
        #expect(line(3_000, isDown: true)?.hasSuffix("(since 00:00:03)") == true)
    }

    @Test func aBrakeOrAShareIsReportedOnceInTheAppsOwnEnvironment() {
        let shards = [0, 1].map { index in
            Self.shard([Self.client("im"), Self.client("im", sandbox: true)], index: index) {
                $0.overShare = ["im"]
                $0.brakes = [ShardStatus.Brake(app: "im", cause: "410")]
            }
        }
        #expect(
            ProcessSnapshot(shards: shards).notes == [
                "app im production: degraded: over its share of the bound; further events are parked; "
                    + "removal of dead tokens is stopped, too many by one cause: 410"
            ])
    }
}
