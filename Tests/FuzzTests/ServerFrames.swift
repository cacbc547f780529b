// SPDX-License-Identifier: Apache-2.0
/// What a server may put on the wire, by the script's choice: sound frames, odd frames and noise (RFC 9113).
struct ServerFrames {
    private static let statuses: [(code: Int, block: [UInt8])] = [
        (200, [0x88]), (400, [0x8C]), (404, [0x8D]), (500, [0x8E]), (410, literal("410")), (429, literal("429")),
        (403, literal("403")), (503, literal("503")), (413, literal("413")), (100, literal("100")),
        (405, literal("405")), (299, literal("299")), (0, literal("abc")), (0, []),
    ]

    private static let bodies = [
        "", #"{"reason":"BadDeviceToken"}"#, #"{"reason":"Unregistered","timestamp":1700000000000}"#,
        #"{"reason":"TooManyRequests"}"#, #"{"reason":"ExpiredProviderToken"}"#,
        #"{"reason":"TooManyProviderTokenUpdates"}"#, #"{"reason":"InvalidProviderToken"}"#,
        #"{"reason":"Shutdown"}"#, #"{"reason":"IdleTimeout"}"#, #"{"reason":"ServiceUnavailable"}"#,
        #"{"reason":"NotOfThisWorld"}"#, #"{"reason":"BadCertificateEnvironment"}"#,
    ].map { Array($0.utf8) }

    static let preface = frame(0x4, 0, 0, [0, 3, 0, 0, 3, 0xE8])

    /// `:status` without indexing (RFC 7541 section 6.2.2; 8 is its place in the static table).
    private static func literal(_ status: String) -> [UInt8] { [0x08, UInt8(status.utf8.count)] + Array(status.utf8) }

    static func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) -> [UInt8] {
        let count = payload.count
        let head = [UInt8(count >> 16 & 0xFF), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF), type, flags]
        return head + bytes(stream) + payload
    }

    private static func bytes(_ word: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) }
    }

    /// The next thing that the server sends; `streams` are those that wait for an answer.
    static func next(_ script: inout Script, streams: [Int32]) -> [UInt8] {
        switch script.number(below: 10) {
        case 0: return script.take(script.number(below: 256))
        case 1:
            let (type, flags) = (script.byte(), script.byte())
            return frame(type, flags, stream(&script, streams), script.take(script.number(below: 256)))
        case 2, 3: return answer(&script, streams)
        case 4:
            // SETTINGS_MAX_CONCURRENT_STREAMS and, now and then, SETTINGS_INITIAL_WINDOW_SIZE.
            var payload: [UInt8] = [0, 3] + bytes(UInt32(script.byte()))
            if script.byte() & 3 == 0 { payload += [0, 4] + bytes(script.word()) }
            return frame(0x4, 0, 0, payload)
        case 5:
            let last = bytes(stream(&script, streams))
            let code = bytes(UInt32(script.byte() & 0xF))
            return frame(0x7, 0, 0, last + code + body(&script))
        case 6: return frame(0x3, 0, stream(&script, streams), bytes(UInt32(script.byte() & 0xF)))
        case 7: return frame(0x6, script.byte() & 1, 0, script.take(8))
        case 8: return frame(0x8, 0, script.byte() & 1 == 0 ? 0 : stream(&script, streams), bytes(script.word()))
        default: return frame(0x4, 1, 0, [])
        }
    }

    private static func stream(_ script: inout Script, _ streams: [Int32]) -> UInt32 {
        let choice = script.byte()
        if choice < 0xC0, !streams.isEmpty { return UInt32(bitPattern: streams[Int(choice) % streams.count]) }
        return choice < 0xF0 ? UInt32(choice & 0x3F) : script.word()
    }

    private static func body(_ script: inout Script) -> [UInt8] {
        let choice = script.byte()
        return choice < 0x80 ? bodies[Int(choice) % bodies.count] : script.take(Int(choice & 0x7F) * 8)
    }

    private static func answer(_ script: inout Script, _ streams: [Int32]) -> [UInt8] {
        let status = statuses[script.number(below: statuses.count)]
        let to = stream(&script, streams)
        let body = body(&script)
        let extra = script.byte()
        var block = status.block
        // retry-after: 1
        if extra & 1 != 0 { block += [0, 11] + Array("retry-after".utf8) + [1, 0x31] }
        let isWhole = extra & 2 == 0
        var out: [UInt8] = []
        let end: UInt8 = body.isEmpty && isWhole ? 1 : 0
        if extra & 4 != 0, block.count > 1 {
            out += frame(0x1, end, to, Array(block.prefix(1))) + frame(0x9, 4, to, Array(block.dropFirst()))
        } else {
            out += frame(0x1, 4 | end, to, block)
        }
        let piece = extra & 8 == 0 ? 16_384 : max(1, Int(extra >> 4))
        var rest = body[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(piece))
            rest = rest.dropFirst(piece)
            out += frame(0x0, rest.isEmpty && isWhole ? 1 : 0, to, part)
        }
        return out
    }
}
