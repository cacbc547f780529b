// SPDX-License-Identifier: Apache-2.0
import JSON
import StageWords
import Support
import Testing

/// `carillon tokens restore`: tokens that were removed because of APNs' answer are bound again.
extension OneWorld {
    @Suite struct Restores {
        @Test func removedTokensOfACauseAndATimeAreBoundAgain() async throws {
            let stage = try Stage.here
            let users = ["rs1", "rs2"]
            var seen = try await stage.play(
                state: users.map { .bind($0, as: token($0, "phone", TokenPrefix.badToken)) },
                events: users.map { .message("\($0)-1", to: [$0]) })
            #expect(seen.feedback.count { users.contains($0["uid"]?.string ?? "") } == 2)
            seen = try await stage.play(events: [.message("rs1-2", to: ["rs1"])])
            #expect(seen.outcomes(of: "rs1-2") == ["rs1 suppressed no_token"])
            let path = try stage.world.writeConfiguration()
            func restore(_ more: String...) async throws -> JSONTree {
                let words = [
                    "tokens", "restore", "--config", path, "--app", "im", "--cause", "BadDeviceToken", "--json",
                ]
                let run = try await offPool { try CommandRun(words: words + more) }
                #expect(run.code == 0, "\(run.errors)")
                return try JSONTree(parsing: Array(run.output.utf8))
            }
            let dry = try await restore("--since", "2020-01-01T00:00:00+08:00", "--dry-run")
            #expect(dry["found"]?.int == 2 && dry["restored"]?.int == 2)
            #expect(try await restore("--since", String(nowMs + 1000))["found"]?.int == 0)
            #expect(try await restore("--since", "2020-01-01")["restored"]?.int == 2)
            seen = try await stage.play(events: [.message("rs1-3", to: ["rs1"])])
            #expect(seen.outcomes(of: "rs1-3").map { $0.hasPrefix("rs1/phone rejected BadDeviceToken") } == [true])
        }
    }
}
