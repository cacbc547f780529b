// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import Fleet
import Glibc
import JSON

/// Requests a worker's operator pages. Blocks its thread, with a time limit for each answer.
struct OperatorClient: Sendable {
    /// `host:port`, as typed.
    let address: String
    private let host: String
    private let port: String
    /// The value for `Authorization: Bearer`; nil for none.
    private let token: String?
    private let patienceMs: Int64

    private static let bytesMax = 16 << 20

    struct Fault: Error {
        var message: String
    }

    /// - Parameter address: `host:port`, `:port` or `port`, with or without `http://`. Returns nil for any other form.
    init?(_ address: String, token: String? = nil, patienceMs: Int64 = 2_000) {
        var text = address[...]
        if text.hasPrefix("http://") { text = text.dropFirst(7) }
        while text.hasSuffix("/") { text = text.dropLast() }
        let colon = text.lastIndex(of: ":")
        var host = colon.map { String(text[..<$0]) } ?? ""
        let port = colon.map { text[text.index(after: $0)...] } ?? text
        guard let number = UInt16(port), number > 0, text.utf8.count <= 300, !host.contains("/") else { return nil }
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        if host.isEmpty { host = "127.0.0.1" }
        // The host becomes part of a header.
        guard host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        self.host = host
        self.port = String(number)
        self.address = host.contains(":") ? "[\(host)]:\(number)" : "\(host):\(number)"
        self.token = token
        self.patienceMs = patienceMs
    }

    /// Both pages, or the reason why they are missing.
    func ask() -> WorkerLook {
        var answer: WorkerLook.Answer
        do throws(Fault) {
            let page = try get("/metrics")
            let status = try get("/statusz")
            guard let tree = try? JSONTree(parsing: status, maxBytes: Self.bytesMax) else {
                throw Fault(message: "/statusz is not JSON: is it a worker?")
            }
            answer = .facts(MetricsPage(page), StatusFacts(tree))
        } catch {
            answer = .away(error.message)
        }
        return WorkerLook(address: address, atNanos: Loop.monotonicNanos(), answer: answer)
    }

    // MARK: - HTTP/1.1, one request a connection

    private func get(_ path: String) throws(Fault) -> [UInt8] {
        let deadline = Loop.monotonicNanos() &+ UInt64(patienceMs) * 1_000_000
        let fd = try connect(deadline)
        defer { close(fd) }
        let bearer = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
        let named = host.contains(":") ? "[\(host)]" : host
        let request = "GET \(path) HTTP/1.1\r\nHost: \(named):\(port)\r\n\(bearer)Connection: close\r\n\r\n"
        try send(Array(request.utf8), fd, deadline)
        let answer = try receive(fd, deadline)
        guard let split = Self.headEnd(answer) else { throw Fault(message: "no HTTP answer") }
        let words = String(decoding: answer[..<split].prefix(64), as: UTF8.self).split(separator: " ")
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1].prefix(3)) else {
            throw Fault(message: "no HTTP answer")
        }
        switch status {
        case 200: return Array(answer[(split + 4)...])
        case 401: throw Fault(message: "a token is required: --token-file")
        case 421: throw Fault(message: "does not accept the name \(host): http.hosts, or its address")
        default: throw Fault(message: "\(path) was answered with status \(status)")
        }
    }

    private static func headEnd(_ bytes: [UInt8]) -> Int? {
        let mark = Array("\r\n\r\n".utf8)
        return bytes.indices.dropLast(3).first { bytes[$0] == mark[0] && bytes[$0...].starts(with: mark) }
    }

    /// Connects to the first address that accepts.
    private func connect(_ deadline: UInt64) throws(Fault) -> Int32 {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, port, &hints, &found)
        guard code == 0 else { throw Fault(message: "no such host: \(String(cString: gai_strerror(code)))") }
        defer { freeaddrinfo(found) }
        var why = "no address"
        var next = found
        while let one = next?.pointee {
            next = one.ai_next
            let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
            let fd = socket(one.ai_family, kind, 0)
            guard fd >= 0 else { continue }
            let failed = Glibc.connect(fd, one.ai_addr, one.ai_addrlen) != 0 && errno != EINPROGRESS ? errno : 0
            let error = failed != 0 ? failed : Self.wait(fd, POLLOUT, deadline) ? Self.error(of: fd) : ETIMEDOUT
            if error == 0 { return fd }
            why = String(cString: strerror(error))
            close(fd)
        }
        throw Fault(message: why)
    }

    private func send(_ bytes: [UInt8], _ fd: Int32, _ deadline: UInt64) throws(Fault) {
        var rest = bytes[...]
        while !rest.isEmpty {
            guard Self.wait(fd, POLLOUT, deadline) else { throw Fault(message: "no answer in time") }
            let count = rest.withUnsafeBytes { Glibc.send(fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count > 0 else { throw Fault(message: String(cString: strerror(errno))) }
            rest = rest.dropFirst(count)
        }
    }

    /// Reads until the peer closes.
    private func receive(_ fd: Int32, _ deadline: UInt64) throws(Fault) -> [UInt8] {
        var answer: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            guard Self.wait(fd, POLLIN, deadline) else { throw Fault(message: "no answer in time") }
            let count = recv(fd, &block, block.count, 0)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count >= 0 else { throw Fault(message: String(cString: strerror(errno))) }
            if count == 0 { return answer }
            answer += block[..<count]
            guard answer.count <= Self.bytesMax else { throw Fault(message: "the answer is too long") }
        }
    }

    private static func wait(_ fd: Int32, _ events: Int32, _ deadline: UInt64) -> Bool {
        while true {
            let now = Loop.monotonicNanos()
            guard now < deadline else { return false }
            var item = pollfd(fd: fd, events: Int16(events), revents: 0)
            let count = poll(&item, 1, Int32(clamping: (deadline - now) / 1_000_000 + 1))
            if count > 0 { return true }
            if count < 0, errno != EINTR { return false }
        }
    }

    private static func error(of fd: Int32) -> Int32 {
        var error: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno
    }
}
