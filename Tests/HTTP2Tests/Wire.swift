// SPDX-License-Identifier: Apache-2.0
import HTTP2

/// Everything a session reported, in order and in comparable form.
final class Notebook: HTTP2SessionDelegate {
    enum Entry: Equatable {
        case headers(tag: UInt64, status: Int, endStream: Bool)
        case data(tag: UInt64, count: Int, endStream: Bool)
        case end(tag: UInt64, StreamEnd)
        case settings(streams: UInt32)
        case goAway(GoAway)
        case pingAck(UInt64)
    }

    var entries: [Entry] = []
    var bodies: [Int32: [UInt8]] = [:]
    var fields: [Int32: [[String]]] = [:]
    /// Runs inside the event, as an owner's code does.
    var onHeaders: ((HTTP2Session, HTTP2Stream) -> Void)?
    var onEnd: ((HTTP2Session, HTTP2Stream) -> Void)?

    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveHeaders fields: borrowing HeaderFields, endStream: Bool
    ) {
        entries.append(.headers(tag: stream.tag, status: fields.status, endStream: endStream))
        for index in 0..<fields.count {
            self.fields[stream.id, default: []].append([
                String(decoding: fields.name(index), as: UTF8.self),
                String(decoding: fields.value(index), as: UTF8.self),
            ])
        }
        onHeaders?(session, stream)
    }

    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveData bytes: UnsafeRawBufferPointer, endStream: Bool
    ) {
        entries.append(.data(tag: stream.tag, count: bytes.count, endStream: endStream))
        bodies[stream.id, default: []].append(contentsOf: bytes)
    }

    func http2(_ session: HTTP2Session, stream: HTTP2Stream, didEnd end: StreamEnd) {
        entries.append(.end(tag: stream.tag, end))
        onEnd?(session, stream)
    }

    func http2(_ session: HTTP2Session, didReceiveSettings settings: PeerSettings) {
        entries.append(.settings(streams: settings.maxConcurrentStreams))
    }

    func http2(_ session: HTTP2Session, didReceiveGoAway goAway: GoAway) { entries.append(.goAway(goAway)) }

    func http2(_ session: HTTP2Session, didReceivePingAck opaque: UInt64) { entries.append(.pingAck(opaque)) }

    func end(_ tag: UInt64) -> StreamEnd? {
        for case .end(tag, let end) in entries { return end }
        return nil
    }
}

/// A client and a server session joined by memory.
final class Wire {
    let client: HTTP2Session
    let server: HTTP2Session
    let clientSide = Notebook()
    let serverSide = Notebook()

    init(
        client: HTTP2Configuration = HTTP2Configuration(), server: HTTP2Configuration = HTTP2Configuration()
    ) throws {
        self.client = try HTTP2Session(.client, configuration: client)
        self.server = try HTTP2Session(.server, configuration: server)
        self.client.delegate = clientSide
        self.server.delegate = serverSide
    }

    /// A pair after both SETTINGS went over, the server allowing `streams`.
    static func open(streams: UInt32 = 100) throws -> Wire {
        var configuration = HTTP2Configuration()
        configuration.settings.maxConcurrentStreams = streams
        let wire = try Wire(server: configuration)
        try wire.pump()
        return wire
    }

    @discardableResult func clientToServer() throws -> Int {
        let bytes = try Self.drain(client)
        try bytes.withUnsafeBytes { try server.receive($0) }
        return bytes.count
    }

    @discardableResult func serverToClient() throws -> Int {
        let bytes = try Self.drain(server)
        try bytes.withUnsafeBytes { try client.receive($0) }
        return bytes.count
    }

    /// Carries bytes both ways until nobody has any.
    func pump() throws {
        var moved = 1
        while moved > 0 { moved = try clientToServer() + serverToClient() }
    }

    func request(_ tag: UInt64, body: [UInt8] = [], path: String = "/3/device/ab") throws -> Int32 {
        let headers = try Wire.requestHeaders(path: path)
        return try client.submitRequest(headers, body: body, tag: tag)
    }

    static func requestHeaders(path: String = "/3/device/ab") throws -> HeaderList {
        var headers = HeaderList()
        try headers.append(":method", "POST")
        try headers.append(":scheme", "https")
        try headers.append(":authority", "localhost:2197")
        try headers.append(":path", path)
        try headers.append("apns-topic", "com.example.im")
        return headers
    }

    static func answer(_ session: HTTP2Session, _ stream: Int32, status: String = "200", body: [UInt8] = []) throws {
        var headers = HeaderList()
        try headers.append(":status", status)
        try session.submitResponse(stream, headers, body: body)
    }

    static func drain(_ session: HTTP2Session, limit: Int = .max) throws -> [UInt8] {
        var bytes: [UInt8] = []
        try session.drainOutput(limit: limit) { bytes.append(contentsOf: $0) }
        return bytes
    }
}
