// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore
import Worker

/// A configuration is read or refused with its problems, each on one line; what is let through a client can work with.
enum ConfigurationFuzz {
    static func run(_ bytes: UnsafeRawBufferPointer) -> [String] {
        // A first line `NAME=value` is a variable of the environment.
        let parts = bytes.split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false).map { Array($0) }
        let variable = String(decoding: parts[0], as: UTF8.self).split(separator: "=", maxSplits: 1)
        var environment: [String: String] = [:]
        if variable.count == 2 { environment["CARILLON__" + variable[0]] = String(variable[1]) }
        let yaml = parts.count > 1 ? parts[1] : []
        // Files are read where they are named: not those that wait for a writer.
        let text = String(decoding: bytes, as: UTF8.self)
        if text.contains("/dev") || text.contains("/proc") { return [] }
        switch Configuration.read(yaml, source: "f", environment: environment) {
        case .failure(let fault):
            return fault.problems.isEmpty ? ["refused without a problem"] : []
        case .success(let configuration):
            return configuration.apps.flatMap { check($0) }
        }
    }

    private static func check(_ app: Configuration.App) -> [String] {
        var complaints = app.limits.client.problems
        if app.policy.id.utf8.count > 64 || app.policy.defaultLanguage.utf8.count > 64 {
            complaints.append("an app over its bounds")
        }
        if app.limits.removals.windowMs < 1000 || app.limits.removals.coolDownMs < 1000 {
            complaints.append("a brake without a window")
        }
        return complaints
    }
}
