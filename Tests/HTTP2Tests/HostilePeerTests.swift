// SPDX-License-Identifier: Apache-2.0
import HTTP2
import Support
import Testing

@Suite struct HostilePeerTests {
    @Test func aHeaderListOverTheLimitResetsOnlyItsStream() throws {
        var configuration = HTTP2Configuration()
        configuration.headerListBytesMax = 500
        configuration.settings.maxConcurrentStreams = 10
        let wire = try Wire(server: configuration)
        try wire.pump()
        _ = try wire.request(1, path: "/" + String(repeating: "a", count: 600))
        let second = try wire.request(2)
        try wire.pump()
        #expect(wire.clientSide.end(1) == .closed(.internalError))
        #expect(wire.serverSide.fields[second]?.isEmpty == false)
        try Wire.answer(wire.server, second)
        try wire.pump()
        #expect(wire.clientSide.end(2) == .closed(.noError))
    }

    /// The status comes first, and with it the answer stands: a push that is sent again for its headers is a double alert.
    @Test func anAnswerWithMoreHeadersThanAreTakenIsAnAnswer() throws {
        let wire = try Wire.open()
        let stream = try wire.request(1)
        try wire.pump()
        var headers = HeaderList()
        try headers.append(":status", "200")
        try headers.append("apns-id", "first")
        for _ in 0..<40 { try headers.append("x-padding", String(repeating: "p", count: 1000), indexing: .never) }
        try wire.server.submitResponse(stream, headers)
        try wire.pump()
        let fields = try #require(wire.clientSide.fields[stream])
        #expect(fields.first == [":status", "200"] && fields.contains(["apns-id", "first"]))
        #expect(fields.count < 20)
        #expect(wire.clientSide.end(1) == .closed(.noError))
        let next = try wire.request(2)
        try wire.pump()
        try Wire.answer(wire.server, next)
        try wire.pump()
        #expect(wire.clientSide.end(2) == .closed(.noError))
    }

    /// 0xBE names the newest entry of the HPACK table: one byte on the wire, 4 000 in the list.
    private func bomb(_ id: UInt8, status: UInt8, fields: Int) -> [UInt8] {
        let value = [UInt8](repeating: 0x61, count: 3000)
        // A literal with indexing: name of one byte, value of 3000.
        let entry: [UInt8] = [0x40, 1, 0x78, 0x7F, 0xB9, 0x16] + value
        let block = [status] + entry + [UInt8](repeating: 0xBE, count: fields)
        return [0, UInt8(block.count >> 8), UInt8(block.count & 0xFF), 1, 4, 0, 0, 0, id] + block
    }

    @Test func aFewBytesThatNameManyHeadersEndTheConnectionAndTheAnswerCounts() throws {
        let wire = try Wire.open()
        let answered = try wire.request(1)
        let other = try wire.request(2)
        try wire.pump()
        let frame = bomb(UInt8(answered), status: 0x88, fields: 10_000)
        let fault = #expect(throws: HTTP2Fault.self) { try frame.withUnsafeBytes { try wire.client.receive($0) } }
        #expect(fault?.code == .session && fault?.description.contains("65536 bytes of headers") == true)
        #expect(wire.clientSide.entries.contains(.headers(tag: 1, status: 200, endStream: false)))
        #expect((wire.clientSide.fields[answered]?.count ?? 0) < 10)
        wire.client.abandon()
        #expect(wire.clientSide.end(2) == .lost && other > answered)
    }

    @Test func trailersThatNameManyHeadersEndTheConnection() throws {
        let wire = try Wire.open()
        let id = UInt8(try wire.request(1))
        try wire.pump()
        let head: [UInt8] = [0, 0, 1, 1, 4, 0, 0, 0, id, 0x88]
        try head.withUnsafeBytes { try wire.client.receive($0) }
        var trailers = bomb(id, status: 0x88, fields: 10_000)
        // Trailers have no status and end the stream.
        trailers.remove(at: 9)
        let length = trailers.count - 9
        trailers[1] = UInt8(length >> 8)
        trailers[2] = UInt8(length & 0xFF)
        trailers[4] = 5
        #expect(throws: HTTP2Fault.self) { try trailers.withUnsafeBytes { try wire.client.receive($0) } }
    }

    @Test func aHeaderListSplitOverManyReadsArrivesWhole() throws {
        let wire = try Wire.open()
        let value = String(repeating: "v", count: 3000)
        let stream = try wire.request(1, body: [9], path: "/" + value)
        for byte in try Wire.drain(wire.client) {
            try [byte].withUnsafeBytes { try wire.server.receive($0) }
        }
        #expect(wire.serverSide.fields[stream]?.contains([":path", "/" + value]) == true)
        #expect(wire.serverSide.bodies[stream] == [9])
    }

    @Test func continuationFramesMayComeInSeparateReads() throws {
        let wire = try Wire.open()
        let id = UInt8(try wire.request(1))
        _ = try Wire.drain(wire.client)
        // HEADERS without END_HEADERS, then CONTINUATION with it; between them another read.
        let pieces: [[UInt8]] = [
            [0, 0, 1, 1, 1, 0, 0, 0, id, 0x88], [0, 0, 5, 9, 4, 0, 0, 0, id, 0x00, 1, 0x61, 1, 0x62],
        ]
        for piece in pieces { try piece.withUnsafeBytes { try wire.client.receive($0) } }
        #expect(wire.clientSide.fields[Int32(id)] == [[":status", "200"], ["a", "b"]])
    }

    @Test func aPingFloodEndsTheSession() throws {
        let wire = try Wire.open()
        // PING without ACK; nothing is drained, as with a peer that sends and never reads.
        let ping: [UInt8] = [0, 0, 8, 6, 0, 0, 0, 0, 0] + [UInt8](repeating: 1, count: 8)
        let flood = [[UInt8]](repeating: ping, count: 1000).flatMap(\.self)
        let fault = #expect(throws: HTTP2Fault.self) {
            try flood.withUnsafeBytes { try wire.client.receive($0) }
        }
        #expect(fault?.code == .session)
    }

    @Test func aSettingsFloodEndsTheSession() throws {
        let wire = try Wire.open()
        let settings: [UInt8] = [0, 0, 6, 4, 0, 0, 0, 0, 0] + [0, 3, 0, 0, 0, 9]
        let flood = [[UInt8]](repeating: settings, count: 1000).flatMap(\.self)
        let fault = #expect(throws: HTTP2Fault.self) {
            try flood.withUnsafeBytes { try wire.client.receive($0) }
        }
        #expect(fault?.code == .session)
    }

    /// CVE-2024-28182: a header list that never ends is given up after a few frames, by the library as Debian mends it.
    @Test func aContinuationFloodEndsTheSession() throws {
        let wire = try Wire.open()
        let id = UInt8(try wire.request(1))
        try wire.pump()
        // `:status: 200`, then an unindexed field `a: b` in each frame, and no END_HEADERS.
        let begin: [UInt8] = [0, 0, 1, 1, 0, 0, 0, 0, id, 0x88]
        let more: [UInt8] = [0, 0, 5, 9, 0, 0, 0, 0, id, 0, 1, 0x61, 1, 0x62]
        let flood = begin + [[UInt8]](repeating: more, count: 10_000).flatMap(\.self)
        let fault = #expect(throws: HTTP2Fault.self) { try flood.withUnsafeBytes { try wire.client.receive($0) } }
        #expect(fault?.code == .session)
        #expect(!wire.clientSide.entries.contains { if case .headers = $0 { true } else { false } })
        wire.client.abandon()
        #expect(wire.clientSide.end(1) == .lost)
    }

    @Test func aBadPrefaceEndsTheSession() throws {
        let server = try HTTP2Session(.server)
        let fault = #expect(throws: HTTP2Fault.self) {
            try Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8).withUnsafeBytes { try server.receive($0) }
        }
        #expect(fault?.code == .session)
        #expect(fault?.description.isEmpty == false)
    }

    @Test func longGoAwayWordsAreCut() throws {
        var configuration = HTTP2Configuration()
        configuration.goAwayBytesMax = 10
        let wire = try Wire(client: configuration)
        try wire.pump()
        try wire.server.submitGoAway(
            lastStreamID: 0, .enhanceYourCalm, debug: [UInt8](repeating: 0x61, count: 4000))
        try wire.pump()
        #expect(
            wire.clientSide.entries.last
                == .goAway(
                    GoAway(
                        lastStreamID: 0, code: .enhanceYourCalm, debug: [UInt8](repeating: 0x61, count: 10))))
    }

    @Test func aPeerThatBreaksTheStreamLimitIsSentAway() throws {
        var configuration = HTTP2Configuration()
        configuration.streamsBeforeSettings = 50
        var limits = HTTP2Configuration()
        limits.settings.maxConcurrentStreams = 1
        let wire = try Wire(client: configuration, server: limits)
        for tag in 0..<5 { _ = try wire.request(UInt64(tag)) }
        try wire.pump()
        // Sent before the limit was known: refused, and so free to be sent again.
        #expect(wire.serverSide.fields.count == 1)
        #expect((1..<5).allSatisfy { wire.clientSide.end(UInt64($0)) == .unprocessed(.refused) })
    }

    @Test(arguments: 0..<200)
    func mutatedTrafficNeverTraps(round: Int) throws {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SeededGenerator(seed: seed)
        let source = try Wire.open()
        for tag in 0..<5 { _ = try source.request(UInt64(tag), body: [UInt8](repeating: 3, count: 90)) }
        var upstream = try Wire.drain(source.client)
        try upstream.withUnsafeBytes { try source.server.receive($0) }
        for id in stride(from: Int32(1), to: 9, by: 2) {
            try Wire.answer(source.server, id, status: "400", body: Array("{\"reason\":\"BadTopic\"}".utf8))
        }
        var downstream = try Wire.drain(source.server)
        let target = try Wire.open()
        for tag in 0..<5 { _ = try target.request(UInt64(tag)) }
        _ = try Wire.drain(target.client)
        for _ in 0..<Int.random(in: 1...6, using: &generator) {
            upstream[Int.random(in: upstream.indices, using: &generator)] = .random(in: 0 ... .max, using: &generator)
            downstream[Int.random(in: downstream.indices, using: &generator)] =
                .random(in: 0 ... .max, using: &generator)
        }
        try? upstream.withUnsafeBytes { try target.server.receive($0) }
        try? downstream.withUnsafeBytes { try target.client.receive($0) }
        _ = try? Wire.drain(target.server)
        _ = try? Wire.drain(target.client)
        target.client.abandon()
        target.server.abandon()
        #expect(target.client.openStreams == 0, "seed \(seed)")
        for tag in 0..<5 {
            let ends = target.clientSide.entries.filter { if case .end(UInt64(tag), _) = $0 { true } else { false } }
            #expect(ends.count == 1, "seed \(seed)")
        }
    }
}
