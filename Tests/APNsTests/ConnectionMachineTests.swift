// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import APNs

@Suite struct ConnectionMachineTests {
    static let rules = ConnectionMachine.Rules(
        connectTimeoutNanos: 1000, settingsTimeoutNanos: 500, pingAfterNanos: 100, pingTimeoutNanos: 50,
        idlePingNanos: 5000, ageMaxNanos: 100_000, streamsMax: 1000, startsWithOneStream: true)

    func ready(limit: UInt32? = 100, warm: Bool = true) -> ConnectionMachine {
        var machine = ConnectionMachine(rules: Self.rules, nowNanos: 0)
        machine.opened(nowNanos: 0)
        _ = machine.settings(maxStreams: limit, nowNanos: 0)
        if warm {
            machine.submitted(nowNanos: 0)
            _ = machine.ended(isProof: true)
        }
        return machine
    }

    @Test func noStreamBeforeSettings() {
        var machine = ConnectionMachine(rules: Self.rules, nowNanos: 0)
        same(machine.room, 0)
        machine.opened(nowNanos: 10)
        same(machine.room, 0)
        same(machine.settings(maxStreams: 100, nowNanos: 20), .becameReady)
        same(machine.room, 1)
    }

    @Test func oneStreamUntilTheFirstAcceptance() {
        var machine = ready(warm: false)
        machine.submitted(nowNanos: 1)
        same(machine.room, 0)
        same(machine.ended(isProof: false), .nothing)
        same(machine.limit, 1)
        machine.submitted(nowNanos: 2)
        same(machine.ended(isProof: true), .warmed)
        same(machine.room, 100)
    }

    @Test func limitIsObeyedAsItMoves() {
        var machine = ready(limit: 10)
        for _ in 0..<6 { machine.submitted(nowNanos: 1) }
        same(machine.room, 4)
        same(machine.settings(maxStreams: 1, nowNanos: 2), .limitChanged)
        same(machine.room, 0)
        for _ in 0..<6 { _ = machine.ended(isProof: true) }
        same(machine.room, 1)
        same(machine.settings(maxStreams: 0, nowNanos: 3), .limitChanged)
        same(machine.room, 0)
        same(machine.settings(maxStreams: .max, nowNanos: 3), .limitChanged)
        same(machine.room, 1000)
        same(machine.settings(maxStreams: .max, nowNanos: 4), .nothing)
    }

    @Test func missingLimitMeansOurOwn() {
        let machine = ready(limit: nil)
        same(machine.room, 1000)
    }

    @Test func silenceBeforeReadyCloses() {
        var machine = ConnectionMachine(rules: Self.rules, nowNanos: 0)
        same(machine.tick(nowNanos: 999), .nothing)
        same(machine.tick(nowNanos: 1000), .close(.connectTimeout))
        machine.opened(nowNanos: 1000)
        same(machine.tick(nowNanos: 1499), .nothing)
        same(machine.tick(nowNanos: 1500), .close(.settingsTimeout))
    }

    @Test func silenceWithWorkIsAskedAndThenDead() {
        var machine = ready()
        machine.submitted(nowNanos: 10)
        same(machine.tick(nowNanos: 99), .nothing)
        same(machine.tick(nowNanos: 100), .ping)
        same(machine.tick(nowNanos: 149), .nothing)
        same(machine.tick(nowNanos: 150), .close(.pingTimeout))
    }

    @Test func answeredPingKeepsTheConnection() {
        var machine = ready()
        machine.submitted(nowNanos: 10)
        same(machine.tick(nowNanos: 110), .ping)
        machine.heard(nowNanos: 120)
        same(machine.pingAcknowledged(nowNanos: 120), 10)
        same(machine.tick(nowNanos: 170), .nothing)
        same(machine.tick(nowNanos: 220), .ping)
    }

    @Test func idleConnectionIsNotSuspectedOnItsFirstRequest() {
        var machine = ready()
        machine.submitted(nowNanos: 3000)
        same(machine.tick(nowNanos: 3050), .nothing)
        same(machine.tick(nowNanos: 3100), .ping)
    }

    @Test func idleConnectionIsAskedSeldom() {
        var machine = ready()
        same(machine.tick(nowNanos: 4999), .nothing)
        same(machine.tick(nowNanos: 5000), .ping)
    }

    @Test func drainingEndsWithItsLastStream() {
        var machine = ready()
        machine.submitted(nowNanos: 1)
        machine.submitted(nowNanos: 1)
        same(machine.drain(.goaway, nowNanos: 2), .nothing)
        same(machine.room, 0)
        same(machine.drain(.goaway, nowNanos: 2), .nothing)
        same(machine.ended(isProof: true), .nothing)
        same(machine.ended(isProof: true), .close)
        same(machine.phase, .closed)
    }

    @Test func drainingWithoutStreamsClosesAtOnce() {
        var machine = ready()
        same(machine.drain(.idle, nowNanos: 2), .close)
        var early = ConnectionMachine(rules: Self.rules, nowNanos: 0)
        early.opened(nowNanos: 0)
        same(early.drain(.goaway, nowNanos: 1), .close)
        same(early.settings(maxStreams: 5, nowNanos: 2), .nothing)
    }

    @Test func ageAsksForASuccessorOnce() {
        var machine = ready()
        machine.heard(nowNanos: 100_000)
        same(machine.tick(nowNanos: 100_000), .replace)
        same(machine.tick(nowNanos: 100_001), .nothing)
        same(machine.room, 100)
    }

    @Test func lateEventsAfterTheEndAreIgnored() {
        var machine = ready()
        machine.closed()
        machine.opened(nowNanos: 1)
        same(machine.settings(maxStreams: 3, nowNanos: 1), .nothing)
        same(machine.ended(isProof: true), .nothing)
        same(machine.tick(nowNanos: 1_000_000), .nothing)
        same(machine.drain(.age, nowNanos: 5), .nothing)
        same(machine.room, 0)
    }
}
