// SPDX-License-Identifier: Apache-2.0
package import LocalServers
import SimulatedSystem
package import Simulator
import StageWords
package import Testing

/// Each test of a suite plays on a stage of its own, with a ready worker: `Stage.here`.
package struct OnStage: SuiteTrait, TestTrait, TestScoping {
    package let isRecursive = true
    let settings: LocalCluster.Settings

    package func scopeProvider(for test: Test, testCase: Test.Case?) -> OnStage? { testCase == nil ? nil : self }

    @concurrent package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable @concurrent () async throws -> Void
    ) async throws {
        let stage = try Stage(settings)
        defer { stage.end() }
        try stage.startWorker()
        try await Stage.$current.withValue(stage) {
            try await StageClock.$nowMs.withValue({ stage.system.wallMs }) { try await function() }
        }
    }
}

extension Trait where Self == OnStage {
    package static var onStage: OnStage { OnStage(settings: LocalCluster.Settings()) }

    package static func onStage(_ settings: LocalCluster.Settings) -> OnStage { OnStage(settings: settings) }

    package static func onStage(scenario: Scenario, appLines: String = "") -> OnStage {
        var settings = LocalCluster.Settings()
        settings.scenario = scenario
        settings.appLines = appLines
        return OnStage(settings: settings)
    }

    /// Lines of the app's entry in the configuration.
    package static func onStage(appLines: String) -> OnStage { onStage(scenario: Scenario(), appLines: appLines) }
}
