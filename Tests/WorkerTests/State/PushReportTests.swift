// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis
import Support
import Testing

@testable import Worker

/// Reports of devices about pushes: counted once, and only if the push can have been.
@Suite(.timeLimit(.minutes(10)))
struct PushReportTests {
    private func bind(_ token: String, device: String, version: Int64) -> UserState.Change {
        let record = TokenRecord(
            hex: token, environment: .production, topic: "t", type: .alert, boundMs: StateWorld.base)
        return .bind(.init(device: device, token: record, version: version))
    }

    private func pid(_ msgID: String, _ kind: PairKind = .message, token: String, uid: String = "u") -> String {
        PushIDPrefix(app: StateWorld.app, uid: uid, kind: kind, id: msgID).id(tokenHex: token).description
    }

    private func report(_ pid: String, device: String = "d", msgID: String? = "m") -> UserState.PushReport {
        UserState.PushReport(device: device, pid: pid, msgID: msgID)
    }

    @Test func aPidIsDerivedAgainFromTheDevicesTokens() async throws {
        let world = try StateWorld()
        try await world.connect()
        try await world.change("u", bind("aa", device: "d", version: 1))
        try await world.change("u", bind("bb", device: "e", version: 1))
        let genuine = report(pid("m", token: "aa"))
        #expect(try await world.change("u", .openReport(genuine)) == .applied(.none))
        #expect(try await world.change("u", .openReport(genuine)) == .repeated)
        // Opened and arrived are two counts.
        #expect(try await world.change("u", .arrivedReport(genuine)) == .applied(.none))
        #expect(try await world.change("u", .arrivedReport(genuine)) == .repeated)
        #expect(try await world.change("u", .openReport(report(pid("m", .revoke, token: "aa")))) == .applied(.none))
        let invented = [
            report("00000000-0000-8000-8000-000000000000"), report(pid("other", token: "aa")),
            report(pid("m", token: "bb")), report(pid("m", token: "aa"), device: "e"),
            report(pid("m", token: "aa"), device: "f"), report(pid("m", token: "aa", uid: "v")), report("p"),
        ]
        for report in invented {
            #expect(try await world.change("u", .openReport(report)) == .ignored(.unknownPush), "\(report)")
            #expect(try await world.change("u", .arrivedReport(report)) == .ignored(.unknownPush), "\(report)")
        }
        // Noted too, since each counts once.
        #expect(try await world.change("u", .openReport(invented[0])) == .repeated)
        // The device's token was replaced: the push's pid can be derived no more.
        try await world.change("u", bind("cc", device: "d", version: 2))
        #expect(
            try await world.change("u", .openReport(report(pid("n", token: "aa"), msgID: "n")))
                == .ignored(.unknownPush))
        #expect(try await world.change("u", .openReport(report(pid("m", token: "cc")))) == .applied(.none))
        await world.end()
    }

    @Test func withoutAMessageTheFirstOfEachDeviceCounts() async throws {
        let world = try StateWorld()
        try await world.connect()
        for device in ["d", "e"] {
            let arrived = UserState.Change.arrivedReport(report("p", device: device, msgID: nil))
            #expect(try await world.change("u", arrived) == .applied(.none))
            #expect(try await world.change("u", arrived) == .repeated)
        }
        #expect(try await world.raw("HLEN", "c:r:{im:u}") == 2)
        let life = try await world.raw("TTL", "c:r:{im:u}") ?? 0
        #expect(life > 6 * 86_400 && life <= 7 * 86_400)
        await world.end()
    }
}
