// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// Opens connections to a port at a steady rate, never asks for anything, and closes none itself.
final class ConnectFlood: LinkDelegate {
    private static let intervalNanos: UInt64 = 5_000_000

    private let port: UInt16
    private let loop: Loop
    private let connectsPerInterval: Int
    private var links: [ObjectIdentifier: Link] = [:]
    /// Ended in this interval: a link must not go in its own callback.
    private var ended: [Link] = []
    private var timer: LoopTimer?
    /// Connections that the server has ended.
    private(set) var endedCount = 0

    /// On the loop, as its release.
    init(port: UInt16, loop: Loop, connectsPerSecond: Int) {
        self.port = port
        self.loop = loop
        connectsPerInterval = connectsPerSecond / Int(1_000_000_000 / Self.intervalNanos)
        timer = LoopTimer(loop: loop) { [unowned self] in connect() }
        connect()
    }

    private func connect() {
        ended.removeAll()
        for _ in 0..<connectsPerInterval {
            let link = Link(loop: loop, to: .tcp(host: "127.0.0.1", port: port))
            link.delegate = self
            links[ObjectIdentifier(link)] = link
            link.open()
        }
        timer?.arm(afterNanos: Self.intervalNanos)
    }

    func linkDidOpen(_ link: Link) {}

    func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) {}

    func link(_ link: Link, didClose reason: LinkFault) {
        endedCount += 1
        links[ObjectIdentifier(link)] = nil
        ended.append(link)
    }
}
