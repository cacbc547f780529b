package import RedisModel
package import SimulatedSystem

/// The Redis of the world: the model of a server behind the network.
package final class RedisSeat {
    package static let address = "127.0.0.5:6379"
    package let server: Server
    private let system: SimulatedSystem
    /// The longest time that a batch of commands takes.
    package var serviceMaxNanos: UInt64 = 200_000

    package init(_ system: SimulatedSystem, seed: UInt64) {
        self.system = system
        var options = ServerOptions(host: "127.0.0.5", port: 6379)
        options.seed = seed
        server = Server(options)
        listen()
    }

    /// Connections are accepted from now on.
    package func listen() {
        system.network.serve(Self.address) { [unowned self] peer in
            let client = server.connect()
            var lastNanos: UInt64 = 0
            peer.didReceive = { [unowned self, unowned peer] bytes in
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

    /// One command of the world's own, such as a gateway's; the reply's bytes.
    @discardableResult
    package func command(_ words: [String]) -> [UInt8] {
        let client = server.connect()
        defer { server.disconnect(client) }
        var bytes = Array("*\(words.count)\r\n".utf8)
        for word in words { bytes += Array("$\(word.utf8.count)\r\n\(word)\r\n".utf8) }
        return server.receive(bytes, from: client, nowMs: system.wallMs)
    }
    /// A line as a person types it; the reply's bytes.
    package func inline(_ line: String) -> [UInt8] {
        let client = server.connect()
        defer { server.disconnect(client) }
        return server.receive(Array("\(line)\r\n".utf8), from: client, nowMs: system.wallMs)
    }
}
