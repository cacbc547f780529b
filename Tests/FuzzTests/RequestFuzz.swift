// SPDX-License-Identifier: Apache-2.0
import Telemetry

@testable import EventLoop

/// Requests to the operator's server: they mean the same however the network cuts them, little of them is held, and what
/// is taken is within its bounds, can be written again, and is answered only by its names and its token.
enum RequestFuzz {
    private static let token = "s3cret token"
    private static let access = HTTPAccess(hosts: ["Push.Example.com"], token: Secret(token))
    private static let addresses = ["127.0.0.1", "::1"]
    /// Statuses that a reader may refuse with.
    private static let refusals: Set<Int> = [400, 413, 431, 501, 505]

    /// A byte for the size of the pieces; the stream.
    static func run(_ bytes: UnsafeRawBufferPointer) -> [String] {
        let piece = Int(bytes.first ?? 0) % 32 + 1
        let stream = Array(bytes.dropFirst())
        // More than that at once is refused, and is none when it comes bit by bit.
        let held = Array(stream.prefix(HTTPRequestReader.heldBytesMax))
        let whole = read(held, by: held.count)
        let cut = read(held, by: piece)
        var complaints = whole.complaints + cut.complaints + flood(stream)
        if whole.steps != cut.steps { complaints.append("in pieces of \(piece): \(cut.steps), not \(whole.steps)") }
        for case .request(let head) in whole.steps { complaints += check(head) + judge(head) }
        return complaints
    }

    private static func read(_ stream: [UInt8], by piece: Int) -> (
        steps: [HTTPRequestReader.Step], complaints: [String]
    ) {
        var reader = HTTPRequestReader()
        var steps: [HTTPRequestReader.Step] = []
        var rest = stream[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(piece))
            rest = rest.dropFirst(part.count)
            part.withUnsafeBytes { reader.append($0) }
            let isOver = steps.last.map { if case .refused = $0 { true } else { false } } ?? false
            while true {
                let step = reader.next()
                guard step != .more else { break }
                if isOver { return (steps, ["\(step) after a refusal"]) }
                steps.append(step)
                // Each request has four bytes at least, so there are no more steps than bytes.
                guard steps.count <= stream.count else { return (steps, ["\(steps.count) of \(stream.count) bytes"]) }
                if case .refused(let status, let words) = step {
                    let isKnown = refusals.contains(status) && !words.isEmpty && words.utf8.count <= 64
                    if !isKnown { return (steps, ["refused with \(status), \(words)"]) }
                    break
                }
            }
        }
        return (steps, [])
    }

    /// What comes while an answer is awaited lies unread, as far as the bound.
    private static func flood(_ stream: [UInt8]) -> [String] {
        guard !stream.isEmpty else { return [] }
        var reader = HTTPRequestReader()
        var block = stream
        while block.count < 1024 { block += stream }
        for _ in 0...(HTTPRequestReader.heldBytesMax / block.count) {
            block.withUnsafeBytes { reader.append($0) }
            if reader.heldBytes > HTTPRequestReader.heldBytesMax + 1 { return ["\(reader.heldBytes) bytes are held"] }
        }
        guard case .refused(413, _) = reader.next() else { return ["a flood is not refused"] }
        return reader.heldBytes == 0 ? [] : ["\(reader.heldBytes) bytes are held after a refusal"]
    }

    // MARK: What was taken

    private static func check(_ head: HTTPRequestHead) -> [String] {
        var complaints: [String] = []
        func want(_ holds: Bool, _ words: String) {
            if !holds { complaints.append("\(words): \(head)") }
        }
        want(!head.method.isEmpty && head.method.allSatisfy(HTTPRequestHead.isTokenByte), "a method that is no token")
        want(head.path.utf8.first == UInt8(ascii: "/") && !head.path.utf8.contains(UInt8(ascii: "?")), "no path")
        let target = head.path + (head.query ?? "")
        want(target.utf8.allSatisfy { (0x21...0x7E).contains($0) }, "a target that is not printed")
        want(target.utf8.count <= HTTPRequestReader.headBytesMax, "a long target")
        let host = head.host ?? "none"
        want((1...255).contains(host.utf8.count), "a host of \(host.utf8.count) bytes")
        want(
            host.utf8.allSatisfy {
                ($0 == UInt8(ascii: ":") || HTTPRequestHead.isTokenByte($0)) && HTTPRequestHead.lowered($0) == $0
            }, "a host that is no name in lower case")
        want(
            head.authorization?.allSatisfy { $0 == 0x09 || $0 >= 0x20 && $0 != 0x7F } ?? true, "a control in a field")
        want(head.authorization?.count ?? 0 <= HTTPRequestReader.headBytesMax, "a long Authorization")
        if let query = head.query, let fields = HTTPQuery(query) {
            let name = query.utf8.prefix { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: "&") }
            let value = fields[String(decoding: name, as: UTF8.self)]
            want(value?.utf8.count ?? 0 <= query.utf8.count, "a field longer than the query")
        }
        let text = written(head)
        // A head at the limit may be longer when all its parts are written out.
        if text.count <= HTTPRequestReader.headBytesMax {
            want(read(text, by: text.count).steps == [.request(head)], "it is read otherwise when written again")
        }
        return complaints
    }

    /// The same request in the plainest form.
    private static func written(_ head: HTTPRequestHead) -> [UInt8] {
        let name = head.host ?? ""
        let host = name.utf8.contains(UInt8(ascii: ":")) ? "[\(name)]" : name
        var text = head.method
        text += " \(head.path)\(head.query.map { "?" + $0 } ?? "") HTTP/1.1\r\nHost: \(host)\r\n".utf8
        if let authorization = head.authorization {
            text += Array("Authorization: ".utf8) + authorization + [0x0D, 0x0A]
        }
        if !head.keepsAlive { text += "Connection: close\r\n".utf8 }
        return text + [0x0D, 0x0A]
    }

    /// Pages answer only our names, and all but a probe want the token; where the token is wanted nothing else will do.
    private static func judge(_ head: HTTPRequestHead) -> [String] {
        let isOurs = head.host.map { ["localhost", "127.0.0.1", "::1", "push.example.com"].contains($0) } ?? false
        let field = String(decoding: head.authorization ?? [], as: UTF8.self)
        let hasToken =
            field.utf8.count >= 7 + token.utf8.count && field.lowercased().hasPrefix("bearer ")
            && field.hasSuffix(" " + token)
            && field.utf8.dropFirst(6).dropLast(token.utf8.count).allSatisfy { $0 == 0x20 }
        let named: HTTPAccess.Verdict = hasToken ? .allowed : .noToken
        var complaints: [String] = []
        for (guarding, wanted) in [
            (.pages, isOurs ? named : .foreignHost), (.figures, named), (.probe, .allowed),
        ] as [(HTTPServer.Guarding, HTTPAccess.Verdict)] {
            let verdict = access.judge(head, addresses: addresses, guarding)
            if verdict != wanted { complaints.append("\(guarding): \(verdict), not \(wanted): \(head)") }
        }
        return complaints
    }
}
