// SPDX-License-Identifier: Apache-2.0
import HTTP2
import Testing

@Suite struct ExchangeTests {
    @Test func aRequestAndItsAnswerTravelWhole() throws {
        let wire = try Wire.open()
        let body = [UInt8]("{\"aps\":{}}".utf8)
        let stream = try wire.request(7, body: body)
        try wire.pump()
        #expect(wire.serverSide.fields[stream]?.contains([":path", "/3/device/ab"]) == true)
        #expect(wire.serverSide.fields[stream]?.contains(["apns-topic", "com.example.im"]) == true)
        #expect(wire.serverSide.bodies[stream] == body)
        try Wire.answer(wire.server, stream, status: "410", body: Array("gone".utf8))
        try wire.pump()
        #expect(
            wire.clientSide.entries.suffix(3) == [
                .headers(tag: 7, status: 410, endStream: false), .data(tag: 7, count: 4, endStream: true),
                .end(tag: 7, .closed(.noError)),
            ])
        #expect(wire.client.openStreams == 0)
        #expect(wire.server.openStreams == 0)
        #expect(wire.serverSide.entries.last == .end(tag: 0, .closed(.noError)))
    }

    @Test func anAnswerWithoutBodyEndsWithItsHeaders() throws {
        let wire = try Wire.open()
        let stream = try wire.request(1)
        try wire.pump()
        try Wire.answer(wire.server, stream)
        try wire.pump()
        #expect(
            wire.clientSide.entries.suffix(2) == [
                .headers(tag: 1, status: 200, endStream: true), .end(tag: 1, .closed(.noError)),
            ])
    }

    @Test func aBodyBeyondEveryWindowArrivesInFull() throws {
        let wire = try Wire.open()
        let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        let stream = try wire.request(1, body: body)
        try wire.pump()
        #expect(wire.serverSide.bodies[stream] == body)
        #expect(wire.client.connectionSendWindow > 0)
    }

    @Test func theRemoteWindowShrinksByTheBytesSent() throws {
        let wire = try Wire.open()
        #expect(wire.client.connectionSendWindow == 65_535)
        _ = try wire.request(1, body: [UInt8](repeating: 1, count: 1000))
        _ = try Wire.drain(wire.client)
        #expect(wire.client.connectionSendWindow == 64_535)
    }

    @Test func aLargerConnectionWindowIsAnnounced() throws {
        var configuration = HTTP2Configuration()
        configuration.connectionWindowBytes = 1 << 20
        let wire = try Wire(server: configuration)
        try wire.pump()
        #expect(wire.client.connectionSendWindow == 1 << 20)
    }

    @Test func aServersTagComesWithLaterEvents() throws {
        let wire = try Wire.open()
        wire.serverSide.onHeaders = { session, stream in session.setTag(99, stream: stream.id) }
        _ = try wire.request(1, body: [1, 2, 3])
        try wire.pump()
        #expect(wire.serverSide.entries.last == .data(tag: 99, count: 3, endStream: true))
    }

    @Test func anOwnerMaySubmitFromInsideAnEvent() throws {
        let wire = try Wire.open()
        var left = 50
        wire.serverSide.onHeaders = { session, stream in try? Wire.answer(session, stream.id) }
        wire.clientSide.onEnd = { _, _ in
            left -= 1
            if left > 0 { _ = try? wire.request(UInt64(left)) }
        }
        _ = try wire.request(50)
        try wire.pump()
        #expect(left == 0)
        wire.clientSide.onEnd = nil
    }

    @Test func aStoppedSessionReportsNothingMore() throws {
        let wire = try Wire.open()
        for tag in 1...3 { _ = try wire.request(UInt64(tag)) }
        wire.serverSide.onHeaders = { session, _ in session.stop() }
        try wire.clientToServer()
        #expect(wire.serverSide.entries.filter { $0 == .headers(tag: 0, status: 0, endStream: true) }.count == 1)
    }

    @Test func pingsComeBackWithTheirBytes() throws {
        let wire = try Wire.open()
        try wire.client.submitPing(0x0102_0304_0506_0708)
        try wire.pump()
        #expect(wire.clientSide.entries.last == .pingAck(0x0102_0304_0506_0708))
    }

    @Test func outputComesWholeAndStopsNearItsLimit() throws {
        let wire = try Wire.open(streams: 1000)
        for tag in 0..<60 { _ = try wire.request(UInt64(tag), body: [UInt8](repeating: 1, count: 1000)) }
        let first = try Wire.drain(wire.client, limit: 5000)
        #expect(first.count >= 5000 && first.count < 5000 + 16_400)
        var largest = 0
        var total = first.count
        try wire.client.drainOutput {
            largest = max(largest, $0.count)
            total += $0.count
        }
        #expect(largest <= 16_384 + 9)
        #expect(total > 60_000)
        #expect(!wire.client.wantsWrite)
    }

    @Test func informationalAnswersAreSkipped() throws {
        let wire = try Wire.open()
        let stream = try wire.request(1)
        _ = try Wire.drain(wire.client)
        // HEADERS(END_HEADERS) ":status: 100", then HEADERS(END_HEADERS|END_STREAM) ":status: 200" (RFC 7541 B).
        let id = UInt8(stream)
        let frames: [UInt8] =
            [0, 0, 5, 1, 4, 0, 0, 0, id, 0x08, 3, 0x31, 0x30, 0x30] + [0, 0, 1, 1, 5, 0, 0, 0, id, 0x88]
        try frames.withUnsafeBytes { try wire.client.receive($0) }
        #expect(
            wire.clientSide.entries.suffix(2) == [
                .headers(tag: 1, status: 200, endStream: true), .end(tag: 1, .closed(.noError)),
            ])
        #expect(wire.clientSide.fields[stream] == [[":status", "200"]])
    }

    @Test func trailersEndTheBody() throws {
        let wire = try Wire.open()
        let id = UInt8(try wire.request(1))
        _ = try Wire.drain(wire.client)
        // 200 without END_STREAM, DATA "x", HEADERS with END_STREAM and one literal field "a: b".
        let frames: [[UInt8]] = [
            [0, 0, 1, 1, 4, 0, 0, 0, id, 0x88] + [0, 0, 1, 0, 0, 0, 0, 0, id, 0x78],
            [0, 0, 5, 1, 5, 0, 0, 0, id, 0x00, 1, 0x61, 1, 0x62],
        ]
        for frame in frames { try frame.withUnsafeBytes { try wire.client.receive($0) } }
        #expect(
            wire.clientSide.entries.suffix(4) == [
                .headers(tag: 1, status: 200, endStream: false), .data(tag: 1, count: 1, endStream: false),
                .data(tag: 1, count: 0, endStream: true), .end(tag: 1, .closed(.noError)),
            ])
    }
}
