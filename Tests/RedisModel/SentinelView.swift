// SPDX-License-Identifier: Apache-2.0
/// What a Sentinel knows: masters by name.
struct SentinelView {
    var masters: [(name: String, host: String, port: UInt16)] = []

    static func knows(_ command: String) -> Bool {
        [
            "ping", "info", "role", "sentinel", "hello", "auth", "client", "command", "quit", "reset", "acl",
            "shutdown",
        ].contains(command)
    }
}

extension Server {
    /// Makes it a Sentinel, or changes what a Sentinel names as the master.
    public func sentinelNames(_ name: String, at host: String, port: UInt16) {
        var view = sentinel ?? SentinelView()
        view.masters.removeAll { $0.name == name }
        view.masters.append((name, host, port))
        sentinel = view
    }

    /// Makes it a Sentinel that knows no master.
    public func becomeSentinel() { sentinel = sentinel ?? SentinelView() }
}
