// SPDX-License-Identifier: Apache-2.0
import Crypto
import Digits
import EventLoop
import HTTP2
import JSON
import Simulator

/// What a test client heard on one request.
struct Answer: Sendable, Equatable {
    var status = 0
    var apnsID: String?
    var uniqueID: String?
    var retryAfter: String?
    var body: [UInt8] = []
    var end = StreamEnd.lost

    var reason: String? { (try? JSONTree(parsing: body))?["reason"]?.string }
}

/// A plain HTTP/2 client on a loop, for asking the simulator things that no sound sender would.
actor TestClient {
    nonisolated let loop: Loop
    private var core: ClientCore?

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(loop: Loop) { self.loop = loop }

    /// Connects and waits for the server's first SETTINGS.
    func connect(port: UInt16, trusting authority: [UInt8]?) async throws {
        let tls = try authority.map { try TLSClientContext(trust: .pem($0), alpn: ["h2"]) }
        let core = try ClientCore(loop: loop, port: port, tls: tls)
        self.core = core
        await withCheckedContinuation { continuation in
            core.onSettings = {
                continuation.resume()
                return true
            }
            core.open()
        }
    }

    /// Connects and waits for nothing.
    func open(port: UInt16) throws {
        let core = try ClientCore(loop: loop, port: port, tls: nil)
        self.core = core
        core.open()
    }

    var streamsMax: UInt32 { core?.session.peerStreamsMax ?? 0 }
    var goAways: [GoAway] { core?.goAways ?? [] }

    /// Waits until the server's stream limit is `limit`; the suite's time limit ends a wait in vain.
    func waitForStreamsMax(_ limit: UInt32) async {
        guard let core, core.session.peerStreamsMax != limit else { return }
        await withCheckedContinuation { continuation in
            core.onSettings = {
                guard core.session.peerStreamsMax == limit else { return false }
                continuation.resume()
                return true
            }
        }
    }

    /// Sends one request and waits for its end.
    func send(_ request: TestRequest) async -> Answer {
        guard let core else { return Answer() }
        return await withCheckedContinuation { continuation in
            core.send(request) { continuation.resume(returning: $0) }
        }
    }

    /// Sends requests in one go and waits for the end of all.
    func send(_ requests: [TestRequest]) async -> [Answer] {
        await withCheckedContinuation { continuation in
            guard let core, !requests.isEmpty else { return continuation.resume(returning: []) }
            var answers = [Answer](repeating: Answer(), count: requests.count)
            var left = requests.count
            for (index, request) in requests.enumerated() {
                core.send(request) { answer in
                    answers[index] = answer
                    left -= 1
                    if left == 0 { continuation.resume(returning: answers) }
                }
            }
        }
    }

    /// Sends a request without waiting for anything but its leaving.
    func sendOnly(_ request: TestRequest) { core?.send(request) { _ in } }

    func close() {
        core?.close()
        core = nil
    }
}

/// A request as a test wants it, right or wrong.
struct TestRequest: Sendable {
    var fields: [RequestHead.Field: String]
    var body: [UInt8] = Array("{\"aps\":{\"alert\":\"hello\"}}".utf8)

    init(token: String = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0", jwt: String? = nil) {
        fields = [
            .method: "POST", .path: "/3/device/" + token, .topic: "com.example.im", .pushType: "alert",
            .priority: "10",
        ]
        if let jwt { fields[.authorization] = "bearer " + jwt }
    }

    func with(_ field: RequestHead.Field, _ value: String?) -> TestRequest {
        var copy = self
        copy.fields[field] = value
        return copy
    }

    func with(body: [UInt8]) -> TestRequest {
        var copy = self
        copy.body = body
        return copy
    }
}

/// The client's part on the loop.
private final class ClientCore: LinkDelegate, HTTP2SessionDelegate {
    let session: HTTP2Session
    var goAways: [GoAway] = []
    /// Called on SETTINGS until it returns true.
    var onSettings: (() -> Bool)?
    private let link: Link
    private var answers: [UInt64: Answer] = [:]
    private var endings: [UInt64: (Answer) -> Void] = [:]
    private var tags: UInt64 = 0

    init(loop: Loop, port: UInt16, tls: TLSClientContext?) throws {
        session = try HTTP2Session(.client)
        link = Link(loop: loop, to: .tcp(host: "127.0.0.1", port: port), tls: tls)
        session.delegate = self
        link.delegate = self
    }

    func open() { link.open() }

    func close() {
        link.close()
        session.abandon()
    }

    func send(_ request: TestRequest, then ending: @escaping (Answer) -> Void) {
        tags += 1
        guard !link.isClosed else { return ending(Answer()) }
        do {
            var headers = HeaderList()
            for field in [RequestHead.Field.method, .path] {
                if let value = request.fields[field] { try headers.append(field.name, value) }
            }
            try headers.append(":scheme", "https")
            try headers.append(":authority", "localhost")
            for field in RequestHead.Field.allCases where field != .method && field != .path {
                if let value = request.fields[field] { try headers.append(field.name, value) }
            }
            endings[tags] = ending
            answers[tags] = Answer()
            _ = try session.submitRequest(headers, body: request.body, tag: tags)
        } catch {
            endings[tags] = nil
            return ending(Answer(end: .unprocessed(.notSent)))
        }
        flush()
    }

    private func flush() {
        try? session.drainOutput { link.write($0) }
    }

    func linkDidOpen(_ link: Link) { flush() }

    func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) {
        try? session.receive(bytes)
        flush()
    }

    func link(_ link: Link, didClose reason: LinkFault) { session.abandon() }

    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveHeaders fields: borrowing HeaderFields, endStream: Bool
    ) {
        answers[stream.tag]?.status = fields.status
        answers[stream.tag]?.apnsID = fields.first("apns-id").map { String(decoding: $0, as: UTF8.self) }
        answers[stream.tag]?.uniqueID = fields.first("apns-unique-id").map { String(decoding: $0, as: UTF8.self) }
        answers[stream.tag]?.retryAfter = fields.first("retry-after").map { String(decoding: $0, as: UTF8.self) }
    }

    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveData bytes: UnsafeRawBufferPointer, endStream: Bool
    ) {
        answers[stream.tag]?.body.append(contentsOf: bytes)
    }

    func http2(_ session: HTTP2Session, stream: HTTP2Stream, didEnd end: StreamEnd) {
        guard var answer = answers.removeValue(forKey: stream.tag) else { return }
        answer.end = end
        endings.removeValue(forKey: stream.tag)?(answer)
    }

    func http2(_ session: HTTP2Session, didReceiveSettings settings: PeerSettings) {
        if onSettings?() == true { onSettings = nil }
    }

    func http2(_ session: HTTP2Session, didReceiveGoAway goAway: GoAway) { goAways.append(goAway) }
    func http2(_ session: HTTP2Session, didReceivePingAck opaque: UInt64) {}
}

/// Provider tokens, sound or not.
enum TestToken {
    static func make(
        _ key: PrivateKey, keyID: String = "KEY1234567", teamID: String = "TEAM123456", issuedAt: Int64,
        iat: String? = nil, alg: String = "ES256", isDER: Bool = false
    ) throws -> String {
        let header = Base64URL.encode(Array("{\"alg\":\"\(alg)\",\"kid\":\"\(keyID)\"}".utf8))
        let claims = Base64URL.encode(Array("{\"iss\":\"\(teamID)\",\"iat\":\(iat ?? String(issuedAt))}".utf8))
        let signed = header + [0x2E] + claims
        let signature = Base64URL.encode(try isDER ? key.signES256DER(signed) : key.signES256(signed))
        return String(decoding: signed + [0x2E] + signature, as: UTF8.self)
    }
}

/// A loop, a simulator and a connected client; `body` runs with them, and all are taken down after it.
func withSimulator(
    _ configuration: SimulatorConfiguration, body: (SimulatorService, TestClient, UInt16) async throws -> Void
) async throws {
    let loop = try Loop(name: "simulator")
    loop.start()
    let service = SimulatorService(loop: loop)
    let client = TestClient(loop: loop)
    do {
        let port = try await service.start(configuration)
        try await client.connect(port: port, trusting: configuration.certificate?.authorityPEM)
        try await body(service, client, port)
    } catch {
        await client.close()
        await service.stop()
        loop.stop()
        throw error
    }
    await client.close()
    await service.stop()
    loop.stop()
}
