// SPDX-License-Identifier: Apache-2.0
import Crypto
import Processes
import Telemetry

@testable import APNs
@testable import EventLoop

/// A whole client without sockets: the script is the server, the network and the clock.
///
/// Whatever they do, every push that was taken ends exactly once, none ends that was not, and each connection's count of
/// streams is that of the pushes in flight on it. Nothing is resolved or connected: that would begin after the run.
final class ClientFuzz: APNsClientDelegate {
    private static let folder = Result { try TemporaryFolder() }
    private static let minted = Result { try MintedCertificate() }
    private static let caFile = Result { try folder.get().write(try minted.get().authorityPEM, to: "ca.pem") }
    private static let key = Result { try PrivateKey.generate() }

    private var script: Script
    private let loop: Loop
    private let client: APNsClient
    private let headers: PushHeaders
    private var taken: Set<UInt64> = []
    private var ended: Set<UInt64> = []
    private var lastTag: UInt64 = 0
    /// What the network holds for each connection.
    private var pending: [Int32: [UInt8]] = [:]
    private let piece: Int
    /// Pushes that the owner still sends from inside an outcome.
    private var echoes: Int
    private(set) var complaints: [String] = []

    static func run(_ bytes: UnsafeRawBufferPointer, on loop: Loop) -> [String] {
        do {
            let fuzz = try ClientFuzz(Script(bytes), loop)
            fuzz.play()
            fuzz.end()
            return fuzz.complaints
        } catch {
            return ["\(error)"]
        }
    }

    private init(_ given: Script, _ loop: Loop) throws {
        script = given
        self.loop = loop
        let modes = script.byte()
        piece = Int(script.byte())
        echoes = Int(modes >> 4)
        headers = try PushHeaders(
            topic: "com.example.im", pushType: .alert, collapseID: modes & 2 == 0 ? Array("c".utf8) : nil)
        let minted = try Self.minted.get()
        let credential: APNsCredential =
            modes & 1 == 0
            ? .certificate(chainPEM: minted.chainPEM, keyPEM: Secret(bytes: minted.privateKeyPEM))
            : .token(key: try Self.key.get(), keyID: "ABC123DEFG", teamID: "DEF123GHIJ")
        var limits = APNsLimits()
        limits.pushesMax = 40
        limits.inFlightMax = modes & 4 == 0 ? 40 : 8
        limits.connectionsMax = 2
        limits.connectSpacingNanos = 1_000_000
        if modes & 8 != 0 { limits.holdNanos = 10_000_000_000 }
        client = try APNsClient(
            loop: loop, endpoint: APNsEndpoint(host: "127.0.0.1", port: 9, caFile: try Self.caFile.get()),
            credential: credential, limits: limits, metrics: APNsMetrics(registry: MetricsRegistry(), app: "im"),
            seed: 1)
        client.delegate = self
    }

    private func play() {
        send(3)
        while !script.isOver {
            step()
            checkCounts()
        }
        for connection in client.pool.connections { deliver(to: connection) }
    }

    private func step() {
        switch script.number(below: 16) {
        case 0: send(script.number(below: 16) + 1)
        case 1: pass(milliseconds: UInt64(script.byte()))
        case 2: pass(milliseconds: UInt64(script.byte()) * 100)
        case 3: if let connection = pick() { connection.linkClosed(LinkFault(.closedByPeer, "by the script")) }
        case 4, 5: if let connection = pick() { deliver(to: connection) }
        case 6: if script.byte() < 4 { client.drain() }
        default:
            guard let connection = pick() else { return pass(milliseconds: 10_000) }
            let pushes = client.pushes
            let streams = pushes.table.all().filter { isInFlight($0, on: connection) }.map { pushes.table[$0].stream }
            pending[connection.serial, default: []] += ServerFrames.next(&script, streams: streams)
            // Half of them arrive at once.
            if script.byte() & 1 == 0 { deliver(to: connection) }
        }
    }

    private func isInFlight(_ slot: PushTable.Slot, on connection: APNsConnection) -> Bool {
        client.pushes.table.isInFlight(slot) && client.pushes.table[slot].connection == connection.serial
    }

    /// One of the connections, opened by the way.
    private func pick() -> APNsConnection? {
        let choice = script.byte()
        guard !client.pool.connections.isEmpty else { return nil }
        let connection = client.pool.connections[Int(choice) % client.pool.connections.count]
        if connection.machine.phase == .connecting {
            connection.linkDidOpen()
            // A sound greeting three times out of four.
            if choice < 0xC0 { pending[connection.serial, default: []] += ServerFrames.preface }
        }
        return connection
    }

    private func deliver(to connection: APNsConnection) {
        guard connection.machine.phase != .connecting, var rest = pending.removeValue(forKey: connection.serial)?[...]
        else { return }
        // A link that was closed brings nothing more.
        while !rest.isEmpty, client.pool.connections.contains(where: { $0 === connection }) {
            let part = Array(rest.prefix(piece == 0 ? rest.count : piece))
            rest = rest.dropFirst(part.count)
            part.withUnsafeBytes { connection.received($0) }
        }
    }

    private func pass(milliseconds: UInt64) {
        loop.turnNanos = loop.nowNanos &+ milliseconds &* 1_000_000
        client.answersDue()
        client.retriesDue()
        client.tick()
        client.pump()
    }

    private func send(_ count: Int) {
        for _ in 0..<count { sendOne(script.byte()) }
    }

    private func sendOne(_ choice: UInt8) {
        lastTag += 1
        let tag = lastTag
        // Few devices, so that some back off while they get more.
        let digit = String(choice & 7)
        guard let token = DeviceToken(String(repeating: digit, count: 64)) else { return }
        let push = Push(
            tag: tag, token: token, headers: headers, id: PushID(high: 1, low: tag),
            payload: Array(repeating: 0x20, count: 1 + Int(choice >> 4) * 200), expiresAtMs: choice == 9 ? 1 : .max,
            lane: choice & 0x10 == 0 ? .direct : .group, isSuspect: choice & 0x20 != 0)
        switch client.send(push) {
        case .taken, .held: taken.insert(tag)
        case .full, .closed: break
        case .unfit(let fault): complaints.append("\(fault)")
        }
    }

    private func checkCounts() {
        let slots = client.pushes.table.all()
        for connection in client.pool.connections where connection.machine.phase != .closed {
            let count = slots.count { isInFlight($0, on: connection) }
            if count != connection.machine.inFlight {
                complaints.append("\(count) pushes are in flight on \(connection.machine.inFlight) streams")
            }
        }
        if client.pushes.table.count != taken.count - ended.count {
            complaints.append("\(client.pushes.table.count) pushes held of \(taken.count), \(ended.count) ended")
        }
    }

    private func end() {
        echoes = 0
        client.close()
        if taken != ended { complaints.append("\(taken.subtracting(ended).count) pushes without an outcome") }
        if client.pushes.table.count != 0 { complaints.append("\(client.pushes.table.count) pushes left") }
        if !client.pool.connections.isEmpty { complaints.append("connections left") }
        if !client.pushes.bodies.isEmpty { complaints.append("bodies left") }
        pending = [:]
    }

    func apns(_ client: APNsClient, didFinish tag: UInt64, outcome: PushOutcome, attempts: Int) {
        // Whether it was taken is known at the end: one that is sent may end before `send` returns.
        if !ended.insert(tag).inserted { complaints.append("push \(tag) ended twice") }
        if attempts == 0, case .accepted = outcome { complaints.append("push \(tag) was accepted unsent") }
        if echoes > 0 {
            echoes -= 1
            sendOne(UInt8(truncatingIfNeeded: tag))
        }
    }
}
