// SPDX-License-Identifier: Apache-2.0
import HTTP2
import Testing

@Suite struct StreamEndTests {
    @Test(arguments: (0...14).map { HTTP2ErrorCode(rawValue: $0) })
    func everyResetEndsItsStreamOnceWithItsCode(code: HTTP2ErrorCode) throws {
        let wire = try Wire.open()
        let stream = try wire.request(5)
        try wire.pump()
        wire.server.resetStream(stream, code)
        try wire.pump()
        let expected: StreamEnd = code == .refusedStream ? .unprocessed(.refused) : .closed(code)
        #expect(wire.clientSide.entries.last == .end(tag: 5, expected))
        #expect(wire.client.openStreams == 0)
        #expect(wire.client.acceptsRequests)
    }

    @Test func aGoAwayNamesTheUnprocessedStreams() throws {
        let wire = try Wire.open()
        let ids = try (1...4).map { try wire.request(UInt64($0)) }
        try wire.pump()
        let reason = Array("{\"reason\":\"Shutdown\"}".utf8)
        try wire.server.submitGoAway(lastStreamID: ids[1], .noError, debug: reason)
        try wire.pump()
        #expect(
            wire.clientSide.entries.contains(
                .goAway(GoAway(lastStreamID: ids[1], code: .noError, debug: reason))))
        #expect(wire.clientSide.end(3) == .unprocessed(.aboveGoAway))
        #expect(wire.clientSide.end(4) == .unprocessed(.aboveGoAway))
        #expect(wire.clientSide.end(1) == nil)
        #expect(!wire.client.acceptsRequests)
        #expect(!wire.client.isDone)
        #expect(throws: HTTP2Fault.self) { try wire.request(9) }
        #expect(wire.client.openStreams == 2)
        for id in ids.prefix(2) { try Wire.answer(wire.server, id) }
        try wire.pump()
        #expect(wire.clientSide.end(1) == .closed(.noError))
        #expect(wire.clientSide.end(2) == .closed(.noError))
        #expect(wire.client.isDone)
    }

    @Test func aRequestStillQueuedAtGoAwayWasNeverSent() throws {
        let wire = try Wire.open(streams: 1)
        let first = try wire.request(1)
        _ = try wire.request(2)
        try wire.pump()
        try wire.server.submitGoAway(lastStreamID: first, .noError)
        try wire.pump()
        try Wire.answer(wire.server, first)
        try wire.pump()
        #expect(wire.clientSide.end(1) == .closed(.noError))
        #expect(wire.clientSide.end(2) == .unprocessed(.notSent))
    }

    @Test func aResetBeforeSendingIsNeverSentAndHappensOnce() throws {
        let wire = try Wire.open()
        let stream = try wire.request(1)
        wire.client.resetStream(stream, .cancel)
        try wire.pump()
        let ends = wire.clientSide.entries.filter { if case .end = $0 { true } else { false } }
        #expect(ends == [.end(tag: 1, .unprocessed(.notSent))])
        #expect(wire.serverSide.fields.isEmpty)
    }

    @Test func aLostConnectionSeparatesSentFromUnsent() throws {
        let wire = try Wire.open(streams: 2)
        for tag in 1...3 { _ = try wire.request(UInt64(tag)) }
        try wire.pump()
        wire.client.abandon()
        #expect(wire.clientSide.end(1) == .lost)
        #expect(wire.clientSide.end(2) == .lost)
        #expect(wire.clientSide.end(3) == .unprocessed(.notSent))
        let count = wire.clientSide.entries.count
        wire.client.abandon()
        #expect(wire.clientSide.entries.count == count)
    }

    @Test func aGoAwayStillHoldsWhenTheConnectionGoesAfterIt() throws {
        let wire = try Wire.open()
        let ids = try (1...2).map { try wire.request(UInt64($0)) }
        try wire.pump()
        try wire.server.submitGoAway(lastStreamID: ids[0], .noError)
        try wire.pump()
        wire.client.abandon()
        #expect(wire.clientSide.end(1) == .lost)
        #expect(wire.clientSide.end(2) == .unprocessed(.aboveGoAway))
    }

    @Test func anAnswerToAStreamThatIsGoneIsAnOrdinaryFault() throws {
        let wire = try Wire.open()
        let stream = try wire.request(1)
        try wire.pump()
        wire.client.resetStream(stream, .cancel)
        try wire.pump()
        #expect(wire.serverSide.entries.last == .end(tag: 0, .closed(.cancel)))
        let fault = #expect(throws: HTTP2Fault.self) { try Wire.answer(wire.server, stream) }
        #expect(fault?.code == .noSuchStream)
    }

    @Test func aConnectionOutlivesManyStreamsWithoutGrowing() throws {
        let wire = try Wire.open()
        wire.serverSide.onHeaders = { session, stream in try? Wire.answer(session, stream.id) }
        for tag in 0..<5000 {
            _ = try wire.request(UInt64(tag))
            try wire.pump()
            wire.clientSide.entries.removeAll(keepingCapacity: true)
            wire.serverSide.entries.removeAll(keepingCapacity: true)
        }
        #expect(wire.client.openStreams == 0 && wire.server.openStreams == 0)
        #expect(wire.client.acceptsRequests)
    }
}
