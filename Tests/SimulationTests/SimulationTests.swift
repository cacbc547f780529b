// SPDX-License-Identifier: Apache-2.0
import Processes
import Simulation
import Testing

@Suite("The simulation of the fleet", .timeLimit(.minutes(5)))
struct SimulationTests {
    @Test(arguments: [1, 2, 3] as [UInt64]) func theSameSeedGivesTheSameLog(seed: UInt64) throws {
        let folder = try TemporaryFolder()
        let simulation = try Simulation(folder: folder.path)
        let plan = Plan(seed: seed)
        let (one, two) = (try simulation.run(plan, keepsLog: true), try simulation.run(plan, keepsLog: true))
        #expect(one.violations.isEmpty, "\(one.violations)")
        #expect(one.hash == two.hash && one.lines == two.lines)
        #expect(!one.lines.isEmpty)
    }
}
