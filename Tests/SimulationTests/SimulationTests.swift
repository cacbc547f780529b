// SPDX-License-Identifier: Apache-2.0
import Foundation
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

    /// The order of hashed collections would change from process to process, and with it these worlds.
    @Test func `each process gives the same log of a seed`() throws {
        let own = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        let command = own.deletingLastPathComponent().appendingPathComponent("simulation").path
        for seed in [34, 115] {
            let hashes = try (0..<4).map { _ in
                let process = try FinishedProcess.run(command, ["--seed", "\(seed)", "--log"])
                return process.output.split(separator: "\n").last { $0.hasPrefix("hash ") }
            }
            #expect(hashes[0] != nil && Set(hashes).count == 1, "seed \(seed): \(hashes)")
        }
    }
}
