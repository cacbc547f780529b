// SPDX-License-Identifier: Apache-2.0
import PushCore
import SimulatedFleet
import SimulatedSystem
import Worker

/// A change of the configuration that workers apply while they run.
struct Reload {
    let system: SimulatedSystem
    private static let addedApp = "added"

    /// Changes it, and says what has changed.
    func change(_ configuration: inout Configuration) -> String {
        let index = system.choice(configuration.apps.count)
        let app = configuration.apps[index].policy.id
        switch system.choice(3) {
        case 0:
            let rate = [0, 20, 200][system.choice(3)]
            configuration.apps[index].limits.rate = rate
            return "the rate of \(app) is \(rate)"
        case 1:
            guard case .token(let file, let id, let team) = configuration.apps[index].credentials[0].source else {
                break
            }
            let next = SimulatedKey.keyIDs.first { $0 != id } ?? id
            configuration.apps[index].credentials[0].source = .token(keyFile: file, keyID: next, teamID: team)
            return "\(app) has the key \(next)"
        default: break
        }
        if let place = configuration.apps.firstIndex(where: { $0.policy.id == Self.addedApp }) {
            configuration.apps.remove(at: place)
            return "an app is removed"
        }
        var added = configuration.apps[index]
        added.policy.id = Self.addedApp
        configuration.apps.append(added)
        return "an app is added"
    }
}
