// SPDX-License-Identifier: Apache-2.0
import LocalServers
import StageWords
import Support
import Testing

/// APNs away and back, over real sockets and TLS.
@Suite struct APNsAwayTests {
    @Test func aSimulatorThatRefusesConnectionsIsWaitedFor() async throws {
        try await Stage.with { stage in
            let crowd = Crowd(name: "closed", count: 200)
            try await stage.play(state: crowd.binds)
            let before = await stage.world.takeSimulatorDown()
            try await stage.writeEvents(crowd.messages)
            try await until("/readyz tells of it") {
                let page = try await stage.page("/readyz")
                return page.status == 503
                    && page.text.contains("app im production: down: no connection to APNs: refused")
            }
            #expect(try await stage.page("/livez").status == 200)
            try await stage.world.bringSimulatorUp()
            try await stage.settle()
            try await until("/readyz is well again") { try await stage.page("/readyz").status == 200 }
            var seen = try await stage.look()
            seen.pushes = before + seen.pushes
            crowd.expectOnceEach(seen, "what was never sent is sent once")
        }
    }
}
