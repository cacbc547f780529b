// SPDX-License-Identifier: Apache-2.0
/// The differences between the effective configuration and a newly read one, by the time when they take effect.
public struct ConfigurationChange: Sendable, Equatable {
    /// Applied while the worker runs.
    public var applied: [EffectiveConfiguration.Key] = []
    /// Applied at the next start.
    public var pending: [EffectiveConfiguration.Key] = []

    init(from before: EffectiveConfiguration.Values, to after: EffectiveConfiguration.Values) {
        let keys = before.keys.union(after.keys).filter { before[$0] != after[$0] }.sorted()
        let (oldApps, newApps) = (Self.apps(before), Self.apps(after))
        let changedSets = newApps.intersection(oldApps).filter { Self.sets(of: $0, before) != Self.sets(of: $0, after) }
        for key in keys {
            if let app = key.app, !oldApps.contains(app) || !newApps.contains(app) {
                // An added or removed app is reported as such. A removed app is served until the next start.
                guard key.path == "id" else { continue }
                if newApps.contains(app) { applied.append(key) } else { pending.append(key) }
            } else if Self.isHot(key), !(key.path.hasPrefix("credentials.") && changedSets.contains(key.app ?? "")) {
                applied.append(key)
            } else {
                pending.append(key)
            }
        }
    }

    private static func apps(_ values: EffectiveConfiguration.Values) -> Set<String> {
        Set(values.keys.compactMap(\.app))
    }

    /// The names of an app's credential sets; for an unnamed set its keys.
    private static func sets(of app: String, _ values: EffectiveConfiguration.Values) -> Set<String> {
        Set(
            values.keys.lazy.filter { $0.app == app && $0.path.hasPrefix("credentials.") }.map { key in
                let parts = key.path.split(separator: ".")
                return parts.count > 2 ? String(parts[1]) : ""
            })
    }

    /// The changes that `Shard.apply` and `WorkerProcess.reload` apply.
    static func isHot(_ key: EffectiveConfiguration.Key) -> Bool {
        let hot = key.app == nil ? hotKeys : hotAppKeys
        return hot.contains { key.path == $0 || key.path.hasPrefix($0 + ".") }
    }

    private static let hotKeys = ["log", "drain_s"]
    private static let hotAppKeys = [
        "topic", "title", "prefix", "profile", "strategy", "default_levels", "dnd_mode", "force_overrides_dnd",
        "dnd_digest",
        "clear_on_read", "badge_cap", "badge", "communication", "default_language", "default_tz", "templates",
        "coalesce",
        "credentials", "limits.rate", "limits.background_per_hour", "limits.share", "limits.removals",
        "limits.suspects",
    ]
}
