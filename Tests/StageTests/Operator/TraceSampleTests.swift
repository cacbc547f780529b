// SPDX-License-Identifier: Apache-2.0
import LocalServers
import Testing
import VirtualStage

/// `trace.sample`: whose traces are kept.
@Suite struct TraceSampleTests {
    private static func settings(_ sample: String) -> LocalCluster.Settings {
        var settings = LocalCluster.Settings()
        settings.scenario = TokenPrefix.scenario
        settings.lines = "trace: {sample: \(sample)}\n"
        return settings
    }

    @Test func aSampleOfNobodyKeepsNothing() throws {
        try Stage.with(Self.settings("0")) { stage in
            try stage.play(
                state: [.bind("t1"), .bind("t1", "pad", as: token("t1", "pad", TokenPrefix.gone))],
                events: [.message("m1", to: ["t1"])])
            #expect(try stage.redisText("STRLEN c:d2:{im:t1}mm1") == ":18", "no trace, but two outcomes")
        }
    }

    @Test func ofTheOthersFailuresAreKept() throws {
        try Stage.with(Self.settings("0.000000001")) { stage in
            let seen = try stage.play(
                state: [.bind("t1"), .bind("t2", as: token("t2", "phone", TokenPrefix.gone))],
                events: [.message("m1", to: ["t1"]), .message("m2", to: ["t2"])])
            #expect(seen.outcomes(of: "m2") == ["t2/phone rejected ExpiredToken 1"])
            #expect(try stage.redisText("STRLEN c:d2:{im:t1}mm1") == ":14", "no trace, but an outcome")
            #expect(try stage.redisText("GET c:d2:{im:t2}mm2").contains("ExpiredToken"))
        }
    }
}
