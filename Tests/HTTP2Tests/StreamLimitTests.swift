// SPDX-License-Identifier: Apache-2.0
import HTTP2
import Testing

@Suite struct StreamLimitTests {
    @Test func onlyOneRequestLeavesBeforeThePeersSettings() throws {
        let wire = try Wire()
        #expect(wire.client.peerStreamsMax == 1)
        for tag in 1...3 { _ = try wire.request(UInt64(tag)) }
        try wire.clientToServer()
        #expect(wire.serverSide.fields.count == 1)
        #expect(wire.client.openStreams == 3)
    }

    @Test func thePeersLimitIsReadAndLiftsTheRest() throws {
        var configuration = HTTP2Configuration()
        configuration.settings.maxConcurrentStreams = 2
        let wire = try Wire(server: configuration)
        for tag in 1...3 { _ = try wire.request(UInt64(tag)) }
        try wire.pump()
        #expect(wire.clientSide.entries.first == .settings(streams: 2))
        #expect(wire.client.peerStreamsMax == 2)
        #expect(wire.serverSide.fields.count == 2)
    }

    @Test func aPeerWithoutALimitIsUnlimited() throws {
        let wire = try Wire()
        try wire.pump()
        #expect(wire.client.peerStreamsMax == .max)
    }

    @Test func aShrunkLimitIsReported() throws {
        let wire = try Wire.open(streams: 1000)
        var settings = HTTP2Settings()
        settings.maxConcurrentStreams = 1
        try wire.server.submitSettings(settings)
        try wire.pump()
        #expect(wire.client.peerStreamsMax == 1)
        #expect(wire.clientSide.entries.last == .settings(streams: 1))
    }

    @Test func aThousandStreamsRunAtOnce() throws {
        let wire = try Wire.open(streams: 1000)
        let ids = try (0..<1000).map { try wire.request(UInt64($0), body: [UInt8](repeating: 7, count: 40)) }
        try wire.pump()
        #expect(wire.server.openStreams == 1000)
        for id in ids { try Wire.answer(wire.server, id) }
        try wire.pump()
        #expect(wire.client.openStreams == 0)
        #expect((0..<1000).allSatisfy { wire.clientSide.end(UInt64($0)) == .closed(.noError) })
    }
}
