// SPDX-License-Identifier: Apache-2.0
import Processes

@testable import Simulation

extension Simulation {
    /// The log of a run; nil if the run could not begin.
    static func evidence(of plan: Plan) -> World.Evidence? {
        guard let folder = try? TemporaryFolder(), let simulation = try? Simulation(folder: folder.path) else {
            return nil
        }
        return try? simulation.evidence(plan)
    }
}
