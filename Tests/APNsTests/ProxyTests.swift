// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Support
import Telemetry
import Testing

@testable import APNs

/// A proxy that does its work: CONNECT, then bytes both ways, unread.
private final class RelayProxy {
    private(set) var requests: [String] = []
    /// What came from the client after its request.
    private(set) var carried: [UInt8] = []
    /// After so many bytes of the first connection neither side hears of the other: a network that forgot it.
    var silentAfter = Int.max
    /// So many first connections are refused.
    var refusals = 0
    let loop: Loop
    private var listener: Listener?
    private var legs: [Leg] = []
    var port: UInt16 { listener?.port ?? 0 }

    init(_ loop: Loop) throws {
        self.loop = loop
        listener = try Listener(loop: loop) { [unowned self] link in legs.append(Leg(self, link)) }
    }

    private final class Leg: LinkDelegate {
        private unowned let proxy: RelayProxy
        private let near: Link
        private var far: Link?
        private var head: [UInt8] = []

        init(_ proxy: RelayProxy, _ near: Link) {
            self.proxy = proxy
            self.near = near
            near.delegate = self
        }

        func linkDidOpen(_ link: Link) {
            if link === far { near.write(Array("HTTP/1.1 200 Connection established\r\n\r\n".utf8)) }
        }

        func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) {
            let isSilent = proxy.legs.first === self && proxy.carried.count > proxy.silentAfter
            if link === far { return isSilent ? () : near.write(bytes) }
            if let far {
                if isSilent { return }
                proxy.carried.append(contentsOf: bytes)
                return far.write(bytes)
            }
            head.append(contentsOf: bytes)
            guard head.suffix(4).elementsEqual([13, 10, 13, 10]) else { return }
            let line = String(decoding: head.prefix { $0 != 13 }, as: UTF8.self)
            proxy.requests.append(line)
            let authority = line.split(separator: " ").dropFirst().first
            let port = authority?.split(separator: ":").last.flatMap { UInt16($0) }
            guard let port, proxy.requests.count > proxy.refusals else {
                return near.write(Array("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n".utf8))
            }
            let link = Link(loop: proxy.loop, to: .tcp(host: "127.0.0.1", port: port))
            link.delegate = self
            far = link
            link.open()
        }

        func link(_ link: Link, didClose reason: LinkFault) {
            near.close()
            far?.close()
        }
    }
}

@Suite(.timeLimit(.minutes(10))) struct ProxyTests {
    /// - Parameter refusals: connections that the proxy refuses first.
    private static func run(
        refusals: Int = 0, silentAfter: Int = .max, limits: APNsLimits = World.quick,
        judge: @escaping @Sendable (World, _ requests: [String], _ carried: [UInt8]) -> Void
    ) async throws {
        try await withWorld({ test in
            let proxy = try RelayProxy(test.loop)
            proxy.refusals = refusals
            proxy.silentAfter = silentAfter
            test.keep(proxy)
            let world = try World(test.loop, limits: limits) {
                $0.proxy = HTTPProxy(host: "127.0.0.1", port: proxy.port)
            }
            world.atEnd = { judge(world, proxy.requests, proxy.carried) }
            world.send(1...300)
            return world
        }) { loop, world in
            try await world.allDone()
            await loop.run { _ in world.atEnd?() }
        }
    }

    @Test func pushesTravelThroughAProxyUnread() async throws {
        try await Self.run { world, requests, carried in
            #expect(world.acceptedCount == 300 && world.peer.requests.count == 300)
            #expect(requests == ["CONNECT 127.0.0.1:\(world.peer.port) HTTP/1.1"])
            // TLS goes from end to end: neither path nor payload stands in what the proxy carried.
            let text = String(decoding: carried, as: UTF8.self)
            #expect(carried.count > 300 * 20 && carried.first == 0x16)
            #expect(!text.contains("/3/device") && !text.contains("hello") && !text.contains("bearer"))
        }
    }

    /// Half-open: the kernel would wait a quarter of an hour; PING finds it.
    @Test func halfOpenConnectionIsLeft() async throws {
        var limits = World.quick
        limits.pingAfterNanos = 100_000_000
        limits.pingTimeoutNanos = 300_000_000
        try await Self.run(silentAfter: 9_000, limits: limits) { world, requests, _ in
            #expect(world.acceptedCount == 300 && world.doubles == 0)
            #expect(requests.count >= 2 && world.client.context.metrics.deadConnections.value >= 1)
            // What may have arrived is sent again under its own id only.
            let ids = Dictionary(grouping: world.peer.requests, by: \.token).values.map { Set($0.map(\.id)).count }
            #expect(ids.allSatisfy { $0 == 1 })
        }
    }

    @Test func proxyThatRefusesIsAskedAgain() async throws {
        try await Self.run(refusals: 3) { world, requests, _ in
            #expect(world.acceptedCount == 300 && world.doubles == 0)
            #expect(requests.count == 4 && world.peer.connections.count == 1)
        }
    }
}
