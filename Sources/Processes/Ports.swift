// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Blocking sockets of 127.0.0.1, for the test's side of a conversation.
public enum Ports {
    /// A free TCP port.
    ///
    /// Another process may take it before it is used. Prefer a listener on port 0, and retry otherwise.
    public static func free() throws(SetupFault) -> UInt16 {
        let socket = try silentListener(backlog: nil)
        close(socket.fd)
        return socket.port
    }

    /// A bound socket. With a backlog it listens, but never accepts.
    public static func silentListener(backlog: Int32?) throws(SetupFault) -> (fd: Int32, port: UInt16) {
        let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard fd >= 0 else { throw SetupFault("cannot make a socket") }
        var address = loopback(port: 0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
                bind(fd, raw, size) == 0 && getsockname(fd, raw, &size) == 0
            }
        }
        let isListening = backlog.map { listen(fd, $0) == 0 } ?? true
        guard code, isListening else {
            close(fd)
            throw SetupFault("cannot bind a port of 127.0.0.1")
        }
        return (fd, UInt16(bigEndian: address.sin_port))
    }

    /// A blocking connection with a limit on each read and write.
    public static func connect(port: UInt16, seconds: Int = 10) throws(SetupFault) -> Int32 {
        let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard fd >= 0 else { throw SetupFault("cannot make a socket") }
        var limit = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = loopback(port: port)
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(fd, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else {
            close(fd)
            throw SetupFault("cannot connect to port \(port)")
        }
        return fd
    }

    /// Sends all bytes, then reads until the peer closes or `isDone` returns true.
    public static func exchange(
        port: UInt16, send bytes: [UInt8], isDone: ([UInt8]) -> Bool = { _ in false }
    ) throws(SetupFault) -> [UInt8] {
        let fd = try connect(port: port)
        defer { close(fd) }
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(fd, $0.baseAddress.map { $0 + sent }, $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { break }
            sent += count
        }
        var answer: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 64 * 1024)
        while !isDone(answer) {
            let count = recv(fd, &block, block.count, 0)
            guard count > 0 else { break }
            answer.append(contentsOf: block[..<count])
        }
        return answer
    }

    private static func loopback(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }
}
