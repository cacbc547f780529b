// SPDX-License-Identifier: Apache-2.0
@testable import RedisModel

/// A client of a model: inline commands in, the replies' text out.
struct Talk {
    let server: Server
    let client: ClientID

    init(_ server: Server) {
        self.server = server
        client = server.connect()
    }

    @discardableResult
    func say(_ line: String, at nowMs: Int64 = 1_000_000) -> String {
        text(server.receive(Array((line + "\r\n").utf8), from: client, nowMs: nowMs))
    }

    /// A command of these words.
    func send(_ words: String..., at nowMs: Int64 = 1_000_000) -> String {
        text(server.receive(Wire.command(words.map { Array($0.utf8) }), from: client, nowMs: nowMs))
    }

    private func text(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self).replacing("\r\n", with: " ").trimmed
    }
}

extension String {
    fileprivate var trimmed: String { hasSuffix(" ") ? String(dropLast()) : self }
}
