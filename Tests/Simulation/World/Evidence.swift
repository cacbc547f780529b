// SPDX-License-Identifier: Apache-2.0

/// What a world showed to its judges.
extension World {
    struct Evidence {
        var sources: Judge.Sources
        var observed: Observed
        var allowance: Allowance
        var episodes: Episodes?
    }

    /// What they claim, where no fault changes their ends.
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
