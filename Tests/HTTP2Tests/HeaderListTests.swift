// SPDX-License-Identifier: Apache-2.0
import HTTP2
import Support
import Testing

@Suite struct HeaderListTests {
    @Test(arguments: ["a\r\nb", "a\nb", "a\0b", " a", "a ", "\u{7F}"])
    func aValueThatMayNotTravelIsRefused(value: String) throws {
        var headers = HeaderList()
        let place = try headers.append("apns-collapse-id", "fine")
        do {
            try headers.append("x", value)
            Issue.record("taken")
        } catch {
            #expect(error.code == .badHeader)
        }
        let count = headers.count
        #expect(count == 1)
        let taken = headers.set(place, Array(value.utf8))
        #expect(!taken)
    }

    @Test(arguments: ["", " ", "/a b", "/a\r"])
    func aPathMustBeAPath(path: String) throws {
        var headers = HeaderList()
        let place = try headers.append(":path", "/3/device/00")
        let taken = headers.set(place, Array(path.utf8))
        #expect(!taken)
    }

    @Test func replacedValuesOfAnyLengthArriveAsTheyAre() throws {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SeededGenerator(seed: seed)
        let wire = try Wire.open(streams: 1000)
        var headers = HeaderList(reserving: 64)
        for (name, value) in [(":method", "POST"), (":scheme", "https"), (":authority", "localhost")] {
            switch name {
            case ":method": try headers.append(":method", value)
            case ":scheme": try headers.append(":scheme", value)
            default: try headers.append(":authority", value)
            }
        }
        let path = try headers.append(":path", "/")
        let identifier = try headers.append("apns-id", "0", indexing: .never)
        let kept = headers.count
        for round in 0..<200 {
            headers.truncate(to: kept)
            let long = "/" + String(repeating: "p", count: .random(in: 0...300, using: &generator))
            let id = String(repeating: "i", count: .random(in: 0...300, using: &generator))
            let taken = (headers.set(path, Array(long.utf8)), headers.set(identifier, Array(id.utf8)))
            #expect(taken == (true, true))
            if round.isMultiple(of: 2) { try headers.append("apns-collapse-id", "c\(round)") }
            if round == 1 { headers.setIndexing(identifier, .allowed) }
            let stream = try wire.client.submitRequest(headers, body: [], tag: 0)
            try wire.clientToServer()
            var expected = [
                [":method", "POST"], [":scheme", "https"], [":authority", "localhost"], [":path", long],
                ["apns-id", id],
            ]
            if round.isMultiple(of: 2) { expected.append(["apns-collapse-id", "c\(round)"]) }
            #expect(wire.serverSide.fields[stream] == expected, "seed \(seed)")
        }
    }

    @Test func receivedFieldsAreFoundByName() throws {
        let reader = FieldReader()
        let wire = try Wire.open()
        wire.server.delegate = reader
        _ = try wire.request(1)
        try wire.clientToServer()
        #expect(reader.topic == "com.example.im")
        #expect(reader.missing)
        #expect(reader.topics == 1)
    }
}

private final class FieldReader: HTTP2SessionDelegate {
    var topic: String?
    var missing = false
    var topics = 0

    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveHeaders fields: borrowing HeaderFields, endStream: Bool
    ) {
        topic = fields.first("apns-topic").map { String(decoding: $0, as: UTF8.self) }
        missing = fields.first("apns-id") == nil
        topics = fields.occurrences("apns-topic")
    }

    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveData bytes: UnsafeRawBufferPointer, endStream: Bool
    ) {}
    func http2(_ session: HTTP2Session, stream: HTTP2Stream, didEnd end: StreamEnd) {}
    func http2(_ session: HTTP2Session, didReceiveSettings settings: PeerSettings) {}
    func http2(_ session: HTTP2Session, didReceiveGoAway goAway: GoAway) {}
    func http2(_ session: HTTP2Session, didReceivePingAck opaque: UInt64) {}
}
