// SPDX-License-Identifier: Apache-2.0
/// A blocking HTTP/1.1 request to 127.0.0.1, for the operator's pages.
public enum HTTPClient {
    /// The server's answer.
    public struct Answer: Sendable {
        public let status: Int
        /// Header names in lower case.
        public let headers: [String: String]
        public let body: [UInt8]
        public var text: String { String(decoding: body, as: UTF8.self) }

        /// Throws if the bytes are no whole answer.
        package init(parsing bytes: [UInt8]) throws(SetupFault) {
            let end = Array("\r\n\r\n".utf8)
            guard let split = bytes.indices.first(where: { bytes[$0...].starts(with: end) }) else {
                throw SetupFault("no HTTP answer in \(bytes.count) bytes")
            }
            var lines = String(decoding: bytes[..<split], as: UTF8.self).split(separator: "\r\n")[...]
            let words = (lines.popFirst() ?? "").split(separator: " ")
            guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]) else {
                throw SetupFault("no HTTP status line")
            }
            var headers: [String: String] = [:]
            for line in lines {
                guard let colon = line.firstIndex(of: ":") else { continue }
                let value = line[line.index(after: colon)...].drop { $0 == " " }
                headers[line[..<colon].lowercased()] = String(value)
            }
            self.status = status
            self.headers = headers
            self.body = Array(bytes[(split + 4)...])
        }
    }

    /// Requests a path on a new connection. Throws if the answer is not HTTP.
    public static func get(port: UInt16, _ path: String) throws(SetupFault) -> Answer {
        try request(port: port, "GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    }

    /// Sends the request text unchanged and reads until the server closes.
    public static func request(port: UInt16, _ text: String) throws(SetupFault) -> Answer {
        let bytes = try Ports.exchange(port: port, send: Array(text.utf8))
        return try Answer(parsing: bytes)
    }
}
