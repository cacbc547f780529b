// SPDX-License-Identifier: Apache-2.0
/// A redis-server with a replica, and three Sentinels that watch them; all on 127.0.0.1.
///
/// All know each other when the initialiser returns. It ends with the last reference.
public final class SentinelGroup: Sendable {
    /// The initial master, and its replica.
    public let servers: [RedisServer]
    public let sentinels: [ServerProcess]
    public let ports: [UInt16]
    /// The Sentinels' TLS ports; empty without TLS.
    public let tlsPorts: [UInt16]
    private let folder: TemporaryFolder

    public static let masterName = "bells"
    /// Sentinels that a busy machine starved of time wait for half a minute before they act (TILT), and perhaps again.
    private static let patience = Duration.seconds(150)

    /// - Parameters:
    ///   - arguments: added to both servers' command lines.
    ///   - downAfterMs: time without an answer after which a server counts as failed.
    ///   - lines: added to the Sentinels' configuration.
    ///   - tlsArguments: with certificate and key. Servers and Sentinels then also speak TLS, and use only TLS among
    ///     themselves.
    public init(
        arguments: [String] = [], downAfterMs: Int = 1_000, sentinelLines: [String] = [], tlsArguments: [String] = []
    ) async throws(SetupFault) {
        let folder = try TemporaryFolder()
        var tlsPorts: [UInt16] = []
        if !tlsArguments.isEmpty { for _ in 0..<5 { tlsPorts.append(try Ports.free()) } }
        func tls(_ index: Int) -> [String] {
            tlsPorts.isEmpty
                ? [] : ["--tls-port", String(tlsPorts[index]), "--tls-replication", "yes"] + tlsArguments
        }
        let master = try RedisServer(arguments: ["--repl-diskless-sync-delay", "0"] + arguments + tls(0))
        let masterPort = tlsPorts.first ?? master.port
        let replica = try RedisServer(
            arguments: [
                "--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1 \(masterPort)",
            ] + arguments + tls(1))
        var sentinels: [ServerProcess] = []
        var ports: [UInt16] = []
        for index in 0..<3 {
            let port = try Ports.free()
            let name = Self.masterName
            let lines =
                [
                    "sentinel monitor \(name) 127.0.0.1 \(masterPort) 2",
                    "sentinel down-after-milliseconds \(name) \(downAfterMs)",
                    "sentinel failover-timeout \(name) 6000",
                ] + sentinelLines
            let file = try folder.write(Array(lines.joined(separator: "\n").utf8), to: "sentinel-\(index).conf")
            sentinels.append(
                try ServerProcess(
                    "redis-server",
                    [file, "--sentinel", "--port", String(port), "--bind", "127.0.0.1", "--dir", folder.path]
                        + tls(index + 2),
                    readyLine: "+monitor"))
            ports.append(port)
        }
        self.folder = folder
        self.tlsPorts = Array(tlsPorts.dropFirst(2))
        servers = [master, replica]
        self.sentinels = sentinels
        self.ports = ports
        try await Self.wait("the Sentinels did not find each other") { () throws(SetupFault) in
            for index in 0..<3 {
                let facts = try self.ask(index, "SENTINEL MASTERS")
                guard facts.contains("num-other-sentinels\r\n$1\r\n2"), facts.contains("num-slaves\r\n$1\r\n1") else {
                    return false
                }
            }
            return true
        }
    }

    /// As `redis.sentinel.nodes` in a configuration.
    public var nodes: String { "[" + ports.map { "127.0.0.1:\($0)" }.joined(separator: ", ") + "]" }

    /// The master's port, as a running Sentinel reports it.
    public var masterPort: UInt16? {
        get throws(SetupFault) {
            for index in 0..<3 where sentinels[index].isRunning {
                let answer = try ask(index, "SENTINEL GET-MASTER-ADDR-BY-NAME \(Self.masterName)")
                return answer.split(whereSeparator: \.isNewline).last.flatMap { UInt16($0) }
            }
            return nil
        }
    }

    /// Waits until the Sentinels name a master other than this one, and that server is a master.
    public func awaitMaster(otherThan server: RedisServer) async throws(SetupFault) {
        try await Self.wait("the Sentinels named no other master") { () throws(SetupFault) in
            guard let port = try self.masterPort, port != server.port,
                let next = self.servers.first(where: { $0.port == port })
            else { return false }
            return try next.command("ROLE").contains("master")
        }
    }

    public func awaitReplica(_ index: Int) async throws(SetupFault) {
        try await Self.wait("server \(index) did not become a replica") { () throws(SetupFault) in
            try self.servers[index].command("INFO replication").contains("master_link_status:up")
        }
    }

    /// Sends an inline command to a Sentinel. A Sentinel has no QUIT, so the answer to a PING after the command marks
    /// the end.
    public func ask(_ index: Int, _ line: String) throws(SetupFault) -> String {
        let end = Array("+PONG\r\n".utf8)
        let bytes = try Ports.exchange(port: ports[index], send: Array((line + "\r\nPING\r\n").utf8)) { answer in
            answer.count >= end.count && answer.suffix(end.count).elementsEqual(end)
        }
        return String(decoding: bytes.dropLast(end.count), as: UTF8.self)
    }

    public func stop() {
        for sentinel in sentinels { sentinel.stop() }
        for server in servers { server.stop() }
    }

    private static func wait(_ why: String, _ holds: () throws(SetupFault) -> Bool) async throws(SetupFault) {
        let clock = ContinuousClock()
        let deadline = clock.now + patience
        while clock.now < deadline {
            if try holds() { return }
            do { try await Task.sleep(for: .milliseconds(50), tolerance: .zero) } catch {
                throw SetupFault("cancelled")
            }
        }
        throw SetupFault(why)
    }
}
