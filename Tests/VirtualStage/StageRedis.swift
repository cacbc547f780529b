// SPDX-License-Identifier: Apache-2.0
import Glibc
package import RedisModel
import SimulatedSystem

/// A server of Redis on a stage: it can stand still, keep replies back, and begin anew.
package final class StageRedis {
    package let server: Server
    let address: String
    private let system: SimulatedSystem
    private var isFrozen = false
    /// What comes meanwhile, in its order.
    private var waiting: [() -> Void] = []
    /// The replies of the connection on which this is sent next are kept back from then on.
    private var marker: [UInt8] = []
    private var held: Connection?
    private var heldReplies: [() -> Void] = []
    private var heldBytes: [UInt8] = []
    private var replication: ReplicationModel?
    /// Commands of workers by name, without those in scripts.
    private var reads: [String: Int] = [:]
    private static let watched = ["HGET", "HGETALL", "HRANDFIELD"].map { (name: $0, mark: Array("\r\n\($0)\r\n".utf8)) }
    private static let markMax = watched.map(\.mark.count).max() ?? 0
    /// Replies to workers that were errors.
    package private(set) var errorReplies = 0

    private final class Connection {
        let client: ClientID
        var lastNanos: UInt64 = 0
        /// The end of its last bytes.
        var tail: [UInt8] = []

        init(_ client: ClientID) { self.client = client }
    }

    convenience init(_ system: SimulatedSystem) {
        self.init(system, Server(ServerOptions(host: "127.0.0.5", port: 6379)))
    }

    init(_ system: SimulatedSystem, _ server: Server) {
        self.system = system
        self.server = server
        address = "\(server.options.host):\(server.options.port)"
        system.network.serve(address) { [unowned self] in accept($0) }
    }

    private func accept(_ peer: ModelPeer) {
        let connection = Connection(server.connect())
        peer.didReceive = { [unowned self, weak peer] bytes in
            note(bytes, on: connection)
            whenAwake { [unowned self] in
                // The model has ended connections when it began anew.
                guard server.isOpen(connection.client) else { return peer?.close() ?? () }
                let reply = server.receive(bytes, from: connection.client, nowMs: system.wallMs)
                let isOpen = server.isOpen(connection.client)
                errorReplies += Self.errors(in: reply)
                send(on: connection) {
                    peer?.send(reply)
                    if !isOpen { peer?.close() }
                }
            }
        }
        peer.didClose = { [unowned self] in server.disconnect(connection.client) }
    }

    private static func count(of mark: [UInt8], in text: [UInt8]) -> Int {
        text.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress, let first = mark.first else { return 0 }
            var (count, place) = (0, 0)
            while place + mark.count <= bytes.count,
                let found = memchr(start + place, Int32(first), bytes.count - place - mark.count + 1)
            {
                if memcmp(found, mark, mark.count) == 0 { count += 1 }
                place = UnsafeRawPointer(found) - start + 1
            }
            return count
        }
    }

    /// Lines such as `-ERR`, though not `-1`.
    private static func errors(in reply: [UInt8]) -> Int {
        reply.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return 0 }
            var (count, place) = (0, 0)
            while place < bytes.count, let found = memchr(start + place, Int32(UInt8(ascii: "-")), bytes.count - place)
            {
                let at = UnsafeRawPointer(found) - start
                let isFirst = at == 0 || bytes[at - 1] == UInt8(ascii: "\n")
                if isFirst, at + 1 < bytes.count, (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(bytes[at + 1]) {
                    count += 1
                }
                place = at + 1
            }
            return count
        }
    }

    private func whenAwake(_ body: @escaping () -> Void) { if isFrozen { waiting.append(body) } else { body() } }

    /// Replies of one connection have an order.
    private func send(on connection: Connection, _ body: @escaping () -> Void) {
        if held === connection { return heldReplies.append(body) }
        connection.lastNanos = max(connection.lastNanos &+ 1, system.nowNanos &+ system.number(0...200_000))
        system.at(connection.lastNanos, body)
    }

    private func note(_ bytes: [UInt8], on connection: Connection) {
        let text = connection.tail + bytes
        for (name, mark) in Self.watched {
            // A mark that ended in the bytes before was counted with them.
            let seen = connection.tail.suffix(mark.count - 1)
            reads[name, default: 0] += Self.count(of: mark, in: seen + bytes)
        }
        connection.tail = Array(text.suffix(Self.markMax - 1))
        if !marker.isEmpty, bytes.firstRange(of: marker) != nil {
            marker = []
            held = connection
        }
        if held === connection { heldBytes += bytes }
    }

    // MARK: What a test does

    /// Commands `HGET`, `HGETALL` or `HRANDFIELD` of workers, without those in scripts.
    package func reads(by name: String) -> Int { reads[name] ?? 0 }

    /// A line as a person types it; the reply's bytes.
    package func inline(_ line: String) -> [UInt8] {
        let client = server.connect()
        defer { server.disconnect(client) }
        return server.receive(Array("\(line)\r\n".utf8), from: client, nowMs: system.wallMs)
    }

    /// It answers nothing until `thaw`, as a process that is stopped.
    package func freeze() { isFrozen = true }

    package func thaw() {
        isFrozen = false
        let bodies = waiting
        waiting = []
        for body in bodies { body() }
    }

    /// It follows a master that nobody writes to, and takes no writes.
    package func becomeReplica() {
        let master = Server(ServerOptions(host: "127.0.0.6", port: 6379))
        master.load(server.snapshot)
        replication = ReplicationModel(master: master, replicas: [server])
    }

    package func becomeMaster() {
        _ = replication?.failOver(to: server, oldMasterFollows: false)
        replication = nil
    }

    /// It ends and begins anew: as another process, with its data.
    package func restart() { restart(with: snapshot) }

    package var snapshot: Snapshot { server.snapshot }

    /// It begins anew with these data.
    package func restart(with snapshot: Snapshot) {
        system.network.cut(to: address)
        server.restart(with: snapshot)
    }

    /// Its process ends: it accepts nobody any more.
    func kill() {
        system.network.close(address)
        system.network.cut(to: address)
    }

    /// The replies of the connection on which this is sent next are kept back from then on.
    package func hold(after text: String) { marker = Array(text.utf8) }

    package var isHolding: Bool { held != nil }

    /// What was sent on that connection since.
    package var heldText: String { String(decoding: heldBytes, as: UTF8.self) }

    package func release() {
        let (connection, bodies) = (held, heldReplies)
        held = nil
        heldReplies = []
        guard let connection else { return }
        for body in bodies { send(on: connection, body) }
    }
}
