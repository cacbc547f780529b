// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Reports the service's state to systemd (sd_notify(3)): one datagram per message, to the socket that systemd named.
/// Any thread.
///
/// Without systemd there is no socket, and nothing is sent.
public final class ServiceManager: Sendable {
    /// Half of systemd's watchdog time; nil without a watchdog.
    public let aliveInterval: Duration?
    private let path: [UInt8]?

    /// Reads `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`, as systemd sets them for this process.
    public init(environment: [String: String]) {
        // `@` represents the zero byte of an abstract name (unix(7)).
        path = environment["NOTIFY_SOCKET"].flatMap { name in
            guard let first = name.utf8.first else { return nil }
            return (first == UInt8(ascii: "@") ? [0] : [first]) + Array(name.utf8.dropFirst())
        }
        let isOurs = environment["WATCHDOG_PID"].map { $0 == String(getpid()) } ?? true
        let micros = environment["WATCHDOG_USEC"].flatMap(Int64.init) ?? 0
        aliveInterval = isOurs && micros > 1 ? .microseconds(micros / 2) : nil
    }

    /// The service works. `systemctl start` returns now.
    public func ready() { send("READY=1\nSTATUS=running") }

    /// The service is about to end.
    public func stopping() { send("STOPPING=1\nSTATUS=draining") }

    /// A watchdog message.
    public func alive() { send("WATCHDOG=1") }

    /// A full socket or an absent manager loses the message but never blocks.
    private func send(_ words: String) {
        guard let path else { return }
        var address = sockaddr_un()
        guard path.count < MemoryLayout.size(ofValue: address.sun_path) else { return }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let kind = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let fd = socket(AF_UNIX, kind, 0)
        guard fd >= 0 else { return }
        defer { close(fd) }
        // An abstract name ends with its last byte, a path with a zero byte. The length covers both.
        let length = socklen_t(MemoryLayout.offset(of: \sockaddr_un.sun_path).map { $0 + path.count } ?? 0)
        let bytes = Array(words.utf8)
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(fd, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, length)
            }
        }
    }
}
