// SPDX-License-Identifier: Apache-2.0
import Glibc
import SimulatedFleet

/// `push-cost SHAPE`: plays the shape's world and prints how many pushes and turns of the worker were counted.
func run(_ shape: CostShape, folder: String) throws -> (pushes: Int, turns: Int) {
    if shape == .client {
        let world = try ClientWorld(shape, folder: folder)
        defer { world.end() }
        return (try world.run(), world.turns)
    }
    let world = try CostWorld(shape, folder: folder)
    defer { world.end() }
    return (try world.run(), world.turns)
}

guard CommandLine.arguments.count == 3, let shape = CostShape(rawValue: CommandLine.arguments[1]) else {
    print("usage: push-cost \(CostShape.allCases.map(\.rawValue).joined(separator: "|")) FOLDER")
    exit(64)
}
let counted = try run(shape, folder: CommandLine.arguments[2])
print("{\"pushes\":\(counted.pushes),\"turns\":\(counted.turns)}")
