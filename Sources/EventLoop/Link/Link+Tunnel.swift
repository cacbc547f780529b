// SPDX-License-Identifier: Apache-2.0
import CLibevent
import Glibc
import Telemetry

// The tunnel through a proxy: one HTTP/1.1 request on the new connection, one answer, then the peer's bytes.
extension Link {
    /// More than any proxy's answer to CONNECT needs.
    private static var answerBytesMax: Int { 8192 }

    /// Asks the proxy for a tunnel. The socket's buffer is empty, so it accepts these few bytes at once.
    func beginTunnel(_ proxy: HTTPProxy) {
        guard case .tcp(let host, let port) = endpoint else { return }
        let authority = "\(host.contains(":") ? "[\(host)]" : host):\(port)"
        var request = Array("CONNECT \(authority) HTTP/1.1\r\nhost: \(authority)\r\n".utf8)
        if let authorization = proxy.authorization {
            // Reserves all memory in advance, so that no copy of the login remains in freed memory.
            request.reserveCapacity(request.count + 64 + authorization.withBytes(\.count))
            request += Array("proxy-authorization: ".utf8)
            authorization.withBytes { request.append(contentsOf: $0) }
            request += Array("\r\n".utf8)
        }
        request += Array("\r\n".utf8)
        stage = .tunnelling
        let sent = request.withUnsafeMutableBytes { bytes in
            defer { if let start = bytes.baseAddress { explicit_bzero(start, bytes.count) } }
            return Glibc.send(fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        }
        guard sent == request.count else {
            return fail(LinkFault(.proxy, "\(endpoint): the proxy \(proxy) accepts no request"))
        }
        if let readEvent { event_add(readEvent, nil) }
    }

    func tunnelReadable() {
        guard stage == .tunnelling, let proxy else { return }
        let count = recv(fd, loop.scratch.baseAddress, Self.answerBytesMax, 0)
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        guard count > 0 else {
            return fail(LinkFault(.proxy, "\(endpoint): the proxy \(proxy) closed the connection"))
        }
        tunnelAnswer.append(contentsOf: loop.scratch[..<count])
        // A refusal says all in its first line: what follows, a page for a browser as a rule, is not awaited.
        if let status = Self.status(tunnelAnswer), status / 100 > 2 {
            let why = status == 407 ? " (the proxy asks for a login, or refuses the one it got)" : ""
            return fail(LinkFault(.proxy, "\(endpoint): the proxy \(proxy) answered \(status)\(why)"))
        }
        guard let end = Self.end(of: tunnelAnswer) else {
            guard tunnelAnswer.count < Self.answerBytesMax else {
                return fail(LinkFault(.proxy, "\(endpoint): the proxy \(proxy) answers without an end"))
            }
            return
        }
        // In TLS the client speaks first, so bytes after the answer mean that this is not a tunnel.
        guard let status = Self.status(tunnelAnswer), status / 100 == 2, end == tunnelAnswer.count else {
            return fail(LinkFault(.proxy, "\(endpoint): the proxy \(proxy) does not speak HTTP/1.1"))
        }
        tunnelAnswer = []
        if let readEvent { event_del(readEvent) }
        beginTLS()
    }

    /// The position after the blank line.
    private static func end(of answer: [UInt8]) -> Int? {
        var at = 3
        while at < answer.count {
            if answer[at] == 10, answer[at - 1] == 13, answer[at - 2] == 10, answer[at - 3] == 13 { return at + 1 }
            at += 1
        }
        return nil
    }

    /// The status of `HTTP/1.x nnn …`.
    private static func status(_ answer: [UInt8]) -> Int? {
        guard answer.count >= 12, answer.starts(with: "HTTP/1.".utf8), answer[8] == UInt8(ascii: " ") else {
            return nil
        }
        return Int(String(decoding: answer[9..<12], as: UTF8.self))
    }
}
