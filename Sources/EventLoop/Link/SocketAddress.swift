// SPDX-License-Identifier: Apache-2.0
import CLibevent
import Glibc

/// One socket address, stored by value.
struct SocketAddress: Sendable {
    private(set) var storage = sockaddr_storage()
    private(set) var length: socklen_t = 0

    /// Copies an address from the system or the resolver; nil for an invalid length.
    init?(_ address: UnsafePointer<sockaddr>?, length: Int) {
        guard let address, length > 0, length <= MemoryLayout<sockaddr_storage>.size else { return nil }
        withUnsafeMutableBytes(of: &storage) {
            $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: length))
        }
        self.length = socklen_t(length)
    }

    /// A numeric IPv4 or IPv6 address.
    init?(numericHost host: String, port: UInt16) {
        var four = sockaddr_in()
        var six = sockaddr_in6()
        if inet_pton(AF_INET, host, &four.sin_addr) == 1 {
            four.sin_family = sa_family_t(AF_INET)
            four.sin_port = port.bigEndian
            withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: four, as: sockaddr_in.self) }
            length = socklen_t(MemoryLayout<sockaddr_in>.size)
        } else if inet_pton(AF_INET6, host, &six.sin6_addr) == 1 {
            six.sin6_family = sa_family_t(AF_INET6)
            six.sin6_port = port.bigEndian
            withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: six, as: sockaddr_in6.self) }
            length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        } else {
            return nil
        }
    }

    /// A unix socket's path; nil if it is empty or longer than the system's 107 bytes.
    init?(unixPath path: String) {
        var address = sockaddr_un()
        let bytes = Array(path.utf8)
        let room = MemoryLayout.size(ofValue: address.sun_path)
        guard !bytes.isEmpty, bytes.count < room, !bytes.contains(0) else { return nil }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: address, as: sockaddr_un.self) }
        length = socklen_t(MemoryLayout<sockaddr_un>.size)
    }

    /// The local address of a socket.
    init?(localOf fd: Int32) {
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let code = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(fd, $0, &size) }
        }
        guard code == 0 else { return nil }
        length = size
    }

    /// The address of a socket's peer.
    init?(peerOf fd: Int32) {
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let code = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(fd, $0, &size) }
        }
        guard code == 0 else { return nil }
        length = size
    }

    var family: Int32 { Int32(storage.ss_family) }

    func withPointer<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }

    /// The port of an IP address, else 0.
    var port: UInt16 {
        withUnsafeBytes(of: storage) { bytes in
            switch family {
            case AF_INET: UInt16(bigEndian: bytes.load(as: sockaddr_in.self).sin_port)
            case AF_INET6: UInt16(bigEndian: bytes.load(as: sockaddr_in6.self).sin6_port)
            default: 0
            }
        }
    }

    /// The numeric host of an IP address.
    var host: String? {
        let offset: Int? =
            switch family {
            case AF_INET: MemoryLayout<sockaddr_in>.offset(of: \.sin_addr)
            case AF_INET6: MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr)
            default: nil
            }
        guard let offset else { return nil }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
            withUnsafeBytes(of: storage) { bytes in
                guard let start = buffer.baseAddress, let raw = bytes.baseAddress else { return nil }
                guard inet_ntop(family, raw + offset, start, socklen_t(buffer.count)) != nil else { return nil }
                return String(cString: start)
            }
        }
    }

    /// `127.0.0.1:80`, `[::1]:80` or `unix`.
    var text: String {
        guard let host else { return "unix" }
        return family == AF_INET ? "\(host):\(port)" : "[\(host)]:\(port)"
    }
}
