// SPDX-License-Identifier: Apache-2.0
import Glibc
import Support

/// One connection to a real redis-server: batches of commands, each with its reply's bytes.
final class RealServer {
    private let socket: Int32
    private var pending: [UInt8] = []
    private var place = 0

    init(port: UInt16) throws { socket = try Ports.connect(port: port) }

    deinit { close(socket) }

    func ask(_ words: [String]) throws -> ReplyTree { try ask([words.map { Array($0.utf8) }])[0] }

    func ask(_ commands: [[[UInt8]]]) throws -> [ReplyTree] {
        let bytes = commands.flatMap { Wire.command($0) }
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                send(socket, $0.baseAddress.map { $0 + sent }, $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw SetupFault("redis-server takes no bytes") }
            sent += count
        }
        return try commands.map { _ in try next() }
    }

    private func next() throws -> ReplyTree {
        while true {
            var end = place
            if let tree = ReplyTree(pending, &end) {
                place = end
                if place == pending.count {
                    pending = []
                    place = 0
                }
                return tree
            }
            var block = [UInt8](repeating: 0, count: 64 << 10)
            let count = recv(socket, &block, block.count, 0)
            guard count > 0 else { throw SetupFault("redis-server does not answer") }
            pending += block[..<count]
        }
    }
}

enum Wire {
    static func command(_ words: [[UInt8]]) -> [UInt8] {
        var bytes = Array("*\(words.count)\r\n".utf8)
        for word in words { bytes += Array("$\(word.count)\r\n".utf8) + word + [13, 10] }
        return bytes
    }

    /// A command for a person to read.
    static func text(_ words: [[UInt8]]) -> String {
        words.map { String(decoding: $0.prefix(200), as: UTF8.self).debugDescription }.joined(separator: " ")
    }
}
