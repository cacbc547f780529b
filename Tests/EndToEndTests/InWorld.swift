// SPDX-License-Identifier: Apache-2.0
import LocalServers
import Simulator
import Support
import Testing

/// One world for all tests of a suite: its servers start once, its worker joins the group once.
struct InWorld: SuiteTrait, TestScoping {
    let settings: LocalCluster.Settings

    @concurrent func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable @concurrent () async throws -> Void
    ) async throws {
        try await Stage.with(settings) { stage in
            try await Stage.$current.withValue(stage) { try await function() }
        }
    }
}

extension Trait where Self == InWorld {
    static func inWorld(scenario: Scenario) -> InWorld {
        var settings = LocalCluster.Settings()
        settings.scenario = scenario
        return InWorld(settings: settings)
    }
}
