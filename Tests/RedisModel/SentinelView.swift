// SPDX-License-Identifier: Apache-2.0
/// The masters that a Sentinel knows by name, each with the epoch of its configuration.
struct SentinelView {
    var masters: [(name: String, host: String, port: UInt16, epoch: Int64)] = []

    static func knows(_ command: String) -> Bool {
        [
            "ping", "info", "role", "sentinel", "hello", "auth", "client", "command", "quit", "reset", "acl",
            "shutdown",
        ].contains(command)
    }
}

extension Server {
    /// Makes it a Sentinel, or changes what a Sentinel names as the master.
    ///
    /// - Parameter epoch: of the configuration; nil: a change of the address raises it by 1.
    public func sentinelNames(_ name: String, at host: String, port: UInt16, epoch: Int64? = nil) {
        var view = sentinel ?? SentinelView()
        let before = view.masters.first { $0.name == name }
        let isSame = before.map { ($0.host, $0.port) == (host, port) } ?? true
        view.masters.removeAll { $0.name == name }
        view.masters.append((name, host, port, epoch ?? (before?.epoch ?? 0) + (isSame ? 0 : 1)))
        sentinel = view
    }

    /// Makes it a Sentinel that knows no master.
    public func becomeSentinel() { sentinel = sentinel ?? SentinelView() }
}
