// SPDX-License-Identifier: Apache-2.0

extension World {
    /// The log of a world, and the facts that its judges need.
    struct Evidence {
        var sources: Judge.Sources
        var observed: Observed
        var allowance: Allowance
        var episodes: Episodes?
    }

    /// The claims of the episodes in a world without faults, and the log with their app.
    struct Episodes {
        var app: AppSettings
        var observed: Observed
        var claims: [(name: String, claims: [Episode.Claim])]

        var violations: [Violation] {
            var judge = EpisodeJudge(observed, app: app)
            for one in claims { judge.judge(one.name, one.claims) }
            return Array(judge.violations.prefix(20))
        }
    }
}
