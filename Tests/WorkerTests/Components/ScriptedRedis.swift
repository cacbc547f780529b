// SPDX-License-Identifier: Apache-2.0
import Redis
import SimulatedSystem
import Testing

@testable import RedisModel
@testable import Worker

/// The other end of a worker's Redis link: it keeps each command until the test answers it. No keys, no rules.
final class ScriptedRedis {
    static let address = "127.0.0.5:6379"
    /// Commands without an answer, oldest first.
    private(set) var open: [[String]] = []
    private var peer: ModelPeer?
    private var reader = RequestReader()

    /// An answer in Redis' protocol.
    enum Answer {
        case null
        case integer(Int)
        case string(String)
        case status
        case error(String)
        case array([Answer])

        /// A hash, or any other list of strings.
        static func strings(_ words: String...) -> Answer { .array(words.map { .string($0) }) }
        static let empty = Answer.array([])

        var bytes: [UInt8] {
            switch self {
            case .null: Array("$-1\r\n".utf8)
            case .integer(let number): Array(":\(number)\r\n".utf8)
            case .string(let text): Array("$\(text.utf8.count)\r\n\(text)\r\n".utf8)
            case .status: Array("+OK\r\n".utf8)
            case .error(let text): Array("-\(text)\r\n".utf8)
            case .array(let parts): Array("*\(parts.count)\r\n".utf8) + parts.flatMap(\.bytes)
            }
        }
    }

    init(_ system: SimulatedSystem) {
        system.network.serve(Self.address) { [unowned self] peer in
            self.peer = peer
            open = []
            reader = RequestReader()
            peer.didReceive = { [unowned self] in receive($0) }
        }
    }

    private func receive(_ bytes: [UInt8]) {
        reader.feed(bytes)
        while case .command(let words) = reader.next() {
            let words = words.map { String(decoding: $0, as: UTF8.self) }
            if let answer = Self.greeting(words) { peer?.send(answer.bytes) } else { open.append(words) }
        }
    }

    /// The answer to a command of the link's own.
    private static func greeting(_ words: [String]) -> Answer? {
        switch words[0] {
        case "INFO": .string("redis_version:7.0.15\r\nrun_id:a\r\nrole:master\r\n")
        case "CLUSTER": .error("ERR This instance has cluster support disabled")
        case "EVAL" where words[1].hasSuffix("return 1"): .integer(1)
        default: nil
        }
    }

    /// The open commands as `NAME first-key`; of a script its own name.
    var commands: [String] { open.map(Self.text) }

    private static let scripts = [
        (ClaimScripts.claim, "claim"), (ClaimScripts.claimEach, "claimEach"), (ClaimScripts.peek, "peek"),
    ]

    private static func text(_ words: [String]) -> String {
        guard words[0].hasPrefix("EVAL") else { return words.prefix(2).joined(separator: " ") }
        let name = scripts.first { $0.0.sha1 == words[1] || RedisScript(words[1]).sha1 == $0.0.sha1 }?.1
        return "\(name ?? "script") \(words[3])"
    }

    /// Answers the oldest commands.
    func answer(_ answers: Answer...) {
        for answer in answers {
            guard !open.isEmpty else {
                Issue.record("no command waits for \(answer)")
                return
            }
            open.removeFirst()
            peer?.send(answer.bytes)
        }
    }

    /// The link breaks, and is not accepted again.
    func breakOff(_ system: SimulatedSystem) {
        system.network.close(Self.address)
        system.network.cut(to: Self.address)
        open = []
    }
}
