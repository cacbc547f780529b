// SPDX-License-Identifier: Apache-2.0
import Glibc
import Telemetry

/// A redis-server on a free port of 127.0.0.1 and a unix socket, without persistence.
///
/// It is ready when the initialiser returns, and ends with the last reference.
public final class RedisServer: Sendable {
    public let port: UInt16
    /// The path of its unix socket.
    public let socketPath: String
    private let folder: TemporaryFolder
    private let arguments: [String]
    private let running: Guarded<ServerProcess>

    private var process: ServerProcess { running.withLock { $0 } }

    /// Starts a server. `arguments` are added to its command line, for example `["--requirepass", "x"]`.
    public init(arguments: [String] = []) throws(SetupFault) {
        let folder = try TemporaryFolder()
        let socketPath = folder.file("redis.sock")
        var lastFault = SetupFault("redis-server did not start")
        for _ in 0..<5 {
            // Another process may take a free port before the server binds it. Then the next one is tried.
            let port = try Ports.free()
            let words = [
                "--port", String(port), "--bind", "127.0.0.1", "--unixsocket", socketPath,
                "--dir", folder.path, "--save", "", "--appendonly", "no", "--daemonize", "no",
            ]
            do throws(SetupFault) {
                running = Guarded(
                    try ServerProcess("redis-server", words + arguments, readyLine: Self.readyLine))
            } catch {
                lastFault = error
                continue
            }
            self.port = port
            self.arguments = words + arguments
            self.socketPath = socketPath
            self.folder = folder
            // Any answer, even a request for a password, shows that it serves.
            let answer = try Ports.exchange(port: port, send: Array("PING\r\n".utf8)) { $0.last == UInt8(ascii: "\n") }
            guard !answer.isEmpty else { throw SetupFault("redis-server does not answer PING") }
            return
        }
        throw lastFault
    }

    public var url: String { "redis://127.0.0.1:\(port)" }

    public var socketURL: String { "unix://\(socketPath)" }

    public var pid: Int32 { process.pid }

    public var isRunning: Bool { process.isRunning }

    /// Ends the server and waits for its end. May be called twice.
    public func stop() { process.stop() }

    /// Ends the server as a crash would.
    public func kill() {
        process.send(SIGKILL)
        process.stop()
    }

    /// Starts the server again after its end, with the data of its last SAVE, or with none.
    public func restart() throws(SetupFault) {
        let next = try ServerProcess("redis-server", arguments, readyLine: Self.readyLine)
        running.withLock { $0 = next }
    }

    private static let readyLine = "Ready to accept connections"

    /// Freezes the server: connections stay open, nothing is answered.
    public func freeze() { process.send(SIGSTOP) }

    /// Resumes a frozen server.
    public func thaw() { process.send(SIGCONT) }

    /// Sends inline commands, one per line, over a new connection and returns the raw replies. Follows a cluster's
    /// redirect to another node of this machine.
    public func command(_ line: String) throws(SetupFault) -> String {
        var port = port
        for _ in 0..<5 {
            let bytes = try Ports.exchange(port: port, send: Array((line + "\r\nQUIT\r\n").utf8))
            let text = String(decoding: bytes, as: UTF8.self)
            let answer = text.hasSuffix("+OK\r\n") ? String(text.dropLast(5)) : text
            guard answer.hasPrefix("-MOVED "),
                let other = answer.split(whereSeparator: { $0 == ":" || $0.isNewline }).last,
                let number = UInt16(other)
            else { return answer }
            port = number
        }
        throw SetupFault("the nodes of the cluster do not agree which node has the key of \(line)")
    }
}
