import Glibc
import LocalServers
import Support
import Synchronization

/// A relay before redis-server that can keep one connection's replies back: as a link does whose packets are late.
final class HeldRelay: Sendable {
    let port: UInt16
    private let listener: Int32
    private let state = Mutex(State())

    private struct State {
        var target: UInt16 = 0
        var marker: [UInt8] = []
        var isHolding = false
        var isReleased = false
        var isClosed = false
        var held: [UInt8] = []
    }

    private struct Pair {
        var client: Int32
        var server: Int32
        var isHeld = false
    }

    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.address(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
                bind(listener, name, length) == 0 && listen(listener, 16) == 0
                    && getsockname(listener, name, &length) == 0
            }
        }
        guard isBound else { throw RelayFault() }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
    }

    struct RelayFault: Error {}

    private var url: String { "redis://127.0.0.1:\(port)" }

    /// The world's workers reach its Redis, which is one server, through this relay.
    func carry(_ settings: inout LocalCluster.Settings) {
        settings.redisURL = url
        settings.usesRedisCluster = false
    }

    /// Relays to this port of 127.0.0.1, on a thread of its own, until `close`.
    func begin(to target: UInt16) {
        state.withLock { $0.target = target }
        Task { try await offPool { self.run() } }
    }

    /// The replies of the connection on which this is sent next are kept back from then on.
    func hold(after text: String) { state.withLock { $0.marker = Array(text.utf8) } }

    var isHolding: Bool { state.withLock { $0.isHolding } }

    /// What was sent on that connection since, and is not answered.
    var heldText: String { state.withLock { String(decoding: $0.held, as: UTF8.self) } }

    func release() { state.withLock { $0.isReleased = true } }

    func close() { state.withLock { $0.isClosed = true } }

    private static func address(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private func run() {
        var pairs: [Pair] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while !state.withLock({ $0.isClosed }) {
            if state.withLock({ $0.isReleased }) {
                for index in pairs.indices { pairs[index].isHeld = false }
            }
            var polled = [pollfd(fd: listener, events: Int16(POLLIN), revents: 0)]
            for pair in pairs {
                polled.append(pollfd(fd: pair.client, events: Int16(POLLIN), revents: 0))
                polled.append(pollfd(fd: pair.isHeld ? -1 : pair.server, events: Int16(POLLIN), revents: 0))
            }
            guard poll(&polled, nfds_t(polled.count), 10) > 0 else { continue }
            var ended: [Int] = []
            for index in pairs.indices {
                let isOpen =
                    (polled[1 + 2 * index].revents == 0 || forwardCommands(&pairs[index], &buffer))
                    // What is held since this command may be answered already.
                    && (polled[2 + 2 * index].revents == 0 || pairs[index].isHeld
                        || pass(pairs[index].server, pairs[index].client, &buffer) > 0)
                if !isOpen { ended.append(index) }
            }
            for index in ended.reversed() { end(pairs.remove(at: index)) }
            if polled[0].revents != 0, let pair = accepted() { pairs.append(pair) }
        }
        pairs.forEach(end)
        Glibc.close(listener)
    }

    private func accepted() -> Pair? {
        let client = accept(listener, nil, nil)
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.address(port: state.withLock { $0.target })
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        let pair = Pair(client: client, server: server)
        if client >= 0, isConnected { return pair }
        end(pair)
        return nil
    }

    private func forwardCommands(_ pair: inout Pair, _ buffer: inout [UInt8]) -> Bool {
        let count = recv(pair.client, &buffer, buffer.count, 0)
        guard count > 0 else { return false }
        let isMarked = state.withLock { state in
            guard !state.isHolding, !state.marker.isEmpty, buffer[..<count].firstRange(of: state.marker) != nil else {
                return false
            }
            state.isHolding = true
            return true
        }
        if isMarked { pair.isHeld = true }
        if pair.isHeld { state.withLock { $0.held.append(contentsOf: buffer[..<count]) } }
        return send(pair.server, buffer, count, Int32(MSG_NOSIGNAL)) == count
    }

    private func pass(_ from: Int32, _ to: Int32, _ buffer: inout [UInt8]) -> Int {
        let count = recv(from, &buffer, buffer.count, 0)
        return count > 0 ? send(to, buffer, count, Int32(MSG_NOSIGNAL)) : count
    }

    private func end(_ pair: Pair) {
        Glibc.close(pair.client)
        Glibc.close(pair.server)
    }
}
