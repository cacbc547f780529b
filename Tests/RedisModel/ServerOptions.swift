// SPDX-License-Identifier: Apache-2.0
/// What a server is started with.
public struct ServerOptions: Sendable {
    public var host: String
    public var port: UInt16
    /// `redis_version`; from 7.2 on scores are printed in their shortest form.
    public var version = "7.0.15" { didSet { hasShortestDigits = Self.isAtLeast72(version) } }
    private(set) var hasShortestDigits = false
    /// Password of the default user.
    public var password: String?
    /// 0: no limit.
    public var maxMemory = 0
    public var evictionPolicy = "noeviction"
    public var keepsLog = false
    /// `min-replicas-to-write`.
    public var minReplicas = 0
    /// `replica-serve-stale-data`.
    public var servesStaleData = true
    public var databases = 16
    /// Decides `run_id`, and what SPOP, SRANDMEMBER, HRANDFIELD and RANDOMKEY take.
    public var seed: UInt64 = 1

    public init(host: String = "127.0.0.1", port: UInt16 = 6379) {
        self.host = host
        self.port = port
    }

    private static func isAtLeast72(_ version: String) -> Bool {
        let parts = version.split(separator: ".").compactMap { Int($0) }
        guard let major = parts.first else { return false }
        return major > 7 || (major == 7 && (parts.dropFirst().first ?? 0) >= 2)
    }
}

/// States of a server that make it refuse commands.
public struct ServerTroubles: Sendable, Equatable {
    /// LOADING: it reads its data.
    public var isLoading = false
    /// BUSY: a script runs for too long.
    public var isBusy = false
    /// MISCONF: it cannot save its data.
    public var cannotSave = false

    public init() {}
}
