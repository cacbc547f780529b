// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// The network of the world: names, listeners, and what is wrong on the way from a host to an address.
package final class SimulatedNetwork {
    unowned let system: SimulatedSystem
    /// Addresses by name; a name that is absent has none.
    package var names: [String: [String]] = [:]
    /// Name servers do not answer before this time.
    package var namesAwayUntilNanos: UInt64 = 0
    private var services: [String: Service] = [:]
    private var paths: [String: NetworkPath] = [:]
    private var connectionCount = 0
    private var connections: [Connection] = []
    private var nextPort: UInt16 = 40_000

    private enum Service {
        case listener(id: ObjectIdentifier, seat: LoopSeat, unowned: () -> Listener?)
        case model((ModelPeer) -> Void)
    }

    init(_ system: SimulatedSystem) { self.system = system }

    /// The way from a host to an address such as `10.0.0.1:443`.
    package func path(from host: String, to address: String) -> NetworkPath {
        let key = host + " " + address
        if let path = paths[key] { return path }
        let path = NetworkPath(address: address)
        paths[key] = path
        return path
    }

    /// A server that is no loop: `accept` gets each connection, sets its closures and keeps it.
    package func serve(_ address: String, _ accept: @escaping (ModelPeer) -> Void) {
        services[address] = .model(accept)
    }

    /// Nothing listens there any more; open connections stay.
    package func close(_ address: String) { services[address] = nil }

    /// Breaks the open connections to an address, of one host or of all.
    package func cut(to address: String, from host: String? = nil) {
        for connection in connections where connection.path.address == address {
            if let host, connection.clientHost != host { continue }
            connection.cut()
        }
    }

    package var openConnections: Int { connections.count }

    func end() {
        for connection in connections { connection.finish() }
        services = [:]
    }

    func remove(_ connection: Connection) { connections.removeAll { $0 === connection } }

    // MARK: For loops

    func resolve(_ host: String, for link: Link, _ seat: LoopSeat) {
        let isNumeric = host.utf8.allSatisfy { ($0 >= 0x30 && $0 <= 0x39) || $0 == 0x2E || $0 == 0x3A }
        let isAway = namesAwayUntilNanos > system.nowNanos
        let found = isNumeric ? [host] : names[host] ?? []
        if isAway, !isNumeric { return }
        system.after(nanos: isNumeric ? 0 : system.number(100_000...5_000_000)) { [weak link, weak seat] in
            seat?.arrive { link?.didResolve(found) }
        }
    }

    func listen(_ listener: Listener, _ seat: LoopSeat, host: String, port: UInt16) -> UInt16? {
        var port = port
        if port == 0 {
            nextPort += 1
            port = nextPort
        }
        let address = "\(host):\(port)"
        guard services[address] == nil else { return nil }
        services[address] = .listener(id: ObjectIdentifier(listener), seat: seat) { [weak listener] in listener }
        return port
    }

    func forget(_ listener: Listener) {
        let gone = services.filter { _, service in
            if case .listener(let id, _, _) = service { id == ObjectIdentifier(listener) } else { false }
        }
        for address in gone.keys.sorted() { services[address] = nil }
    }

    func connect(_ link: Link, _ seat: LoopSeat?, to address: String) -> any VirtualStream {
        connectionCount += 1
        let host = seat?.process.host ?? "?"
        let connection = Connection(
            number: connectionCount, path: path(from: host, to: address), clientHost: host, network: self)
        connections.append(connection)
        let end = LinkEnd(connection, .client, seat)
        end.link = link
        connection.client = .link(end)
        let path = connection.path
        system.after(nanos: path.delay(system)) { [weak self, weak connection] in
            guard let self, let connection, !connection.isOver else { return }
            knock(connection, address)
        }
        return end
    }

    /// The first packet has arrived.
    private func knock(_ connection: Connection, _ address: String) {
        let path = connection.path
        if path.heldUntilNanos > system.nowNanos {
            guard path.heldUntilNanos != .max else { return }
            return system.at(path.heldUntilNanos) { [weak self, weak connection] in
                guard let connection, !connection.isOver else { return }
                self?.knock(connection, address)
            }
        }
        guard let service = services[address], path.refusesUntilNanos <= system.nowNanos else {
            return connection.answer(LinkFault(.refused, "\(address): connection refused"))
        }
        switch service {
        case .model(let accept):
            let peer = ModelPeer(connection)
            connection.server = .model(peer)
            accept(peer)
        case .listener(_, let seat, let listener):
            guard !seat.process.isDead else {
                return connection.answer(LinkFault(.refused, "\(address): connection refused"))
            }
            let end = LinkEnd(connection, .server, seat)
            connection.server = .link(end)
            seat.arrive {
                guard let listener = listener() else { return end.close(isReset: true) }
                listener.didAccept(end, host: connection.clientHost, port: 40_000)
            }
        }
        connection.answer(nil)
    }
}

/// What is true of the way from one host to one address.
package final class NetworkPath {
    package let address: String
    package var delayNanos = usualDelayNanos
    package static let usualDelayNanos: ClosedRange<UInt64> = 50_000...1_000_000
    /// Bytes under way that one direction holds before the writer has to wait.
    package var windowBytes = 256 * 1024
    /// Nothing arrives before this time; `max`: nothing arrives any more, and nobody is told.
    package var heldUntilNanos: UInt64 = 0
    /// Connections are refused before this time.
    package var refusesUntilNanos: UInt64 = 0
    /// Reads return less than has arrived, in that many of a thousand cases.
    package var shortReadsPerMille = 50

    init(address: String) { self.address = address }

    func delay(_ system: SimulatedSystem) -> UInt64 { system.number(delayNanos) }
}
