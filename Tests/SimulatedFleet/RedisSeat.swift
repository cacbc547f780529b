// SPDX-License-Identifier: Apache-2.0
package import RedisModel
package import SimulatedSystem

/// The model of a Redis server behind the network.
package final class RedisSeat {
    package static let address = "127.0.0.5:6379"
    package let server: Server
    package let address: String
    private let system: SimulatedSystem
    /// The longest time that a batch of commands takes.
    package var serviceMaxNanos = usualServiceNanos
    package static let usualServiceNanos: UInt64 = 200_000
    /// When the last bytes came over the network.
    package private(set) var receivedNanos: UInt64 = 0

    package convenience init(_ system: SimulatedSystem, seed: UInt64) {
        var options = ServerOptions(host: "127.0.0.5", port: 6379)
        options.seed = seed
        self.init(system, server: Server(options), address: Self.address)
    }

    package init(_ system: SimulatedSystem, server: Server, address: String) {
        self.system = system
        self.server = server
        self.address = address
        listen()
    }

    /// Connections are accepted from now on.
    package func listen() {
        system.network.serve(address) { [unowned self] peer in
            let client = server.connect()
            var lastNanos: UInt64 = 0
            peer.didReceive = { [unowned self, unowned peer] bytes in
                receivedNanos = system.nowNanos
                let reply = server.receive(bytes, from: client, nowMs: system.wallMs)
                let isOpen = server.isOpen(client)
                // Events of one time have no order, but replies of one connection have.
                lastNanos = max(lastNanos &+ 1, system.nowNanos &+ system.number(0...serviceMaxNanos))
                system.at(lastNanos) { [weak peer] in
                    peer?.send(reply)
                    if !isOpen { peer?.close() }
                }
            }
            peer.didClose = { [unowned self] in server.disconnect(client) }
        }
    }

    /// Connections break, and none is accepted any more.
    package func close() {
        system.network.close(address)
        system.network.cut(to: address)
    }

    /// One command of the world's own, such as a gateway's, which the server never refuses for its state; the reply's bytes.
    @discardableResult
    package func command(_ words: [String], isAsking: Bool = false) -> [UInt8] {
        let client = server.connect()
        let (troubles, memory) = (server.troubles, server.options.maxMemory)
        let replicas = server.options.minReplicas
        server.troubles = ServerTroubles()
        server.setMaxMemory(0)
        server.setMinReplicas(0)
        defer {
            server.disconnect(client)
            server.troubles = troubles
            server.setMaxMemory(memory)
            server.setMinReplicas(replicas)
        }
        if isAsking {
            _ = server.receive(Array("*1\r\n$6\r\nASKING\r\n".utf8), from: client, nowMs: system.wallMs)
        }
        var bytes = Array("*\(words.count)\r\n".utf8)
        for word in words { bytes += Array("$\(word.utf8.count)\r\n\(word)\r\n".utf8) }
        return server.receive(bytes, from: client, nowMs: system.wallMs)
    }
}
