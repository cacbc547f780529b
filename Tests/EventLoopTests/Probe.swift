// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc
import Support

/// What a link told its delegate.
enum LinkEvent: Sendable, Equatable {
    case opened(String?)
    case received([UInt8])
    case closed(LinkFault.Reason)

    var isClosed: Bool {
        if case .closed = self { return true }
        return false
    }
}

/// A delegate that records what it is told, and does what the test wants at that moment.
final class Probe: LinkDelegate {
    let facts: Facts<LinkEvent>
    var onOpen: (Link) -> Void = { _ in }
    var onBytes: (Link) -> Void = { _ in }
    var link: Link?
    private(set) var detail = Facts<String>()

    private let unsent: Facts<Int>?

    /// `unsent` hears what had not left when the link ended.
    init(_ facts: Facts<LinkEvent>, unsent: Facts<Int>? = nil) {
        self.facts = facts
        self.unsent = unsent
    }

    func linkDidOpen(_ link: Link) {
        facts.record(.opened(link.negotiatedProtocol))
        onOpen(link)
    }

    func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) {
        facts.record(.received(Array(bytes)))
        onBytes(link)
    }

    func link(_ link: Link, didClose reason: LinkFault) {
        unsent?.record(link.pendingOutputBytes)
        detail.record(reason.detail)
        facts.record(.closed(reason.reason))
    }
}

/// A server that sends back what it gets, and stops reading while its own output is full.
final class EchoServer: LinkDelegate {
    private var listener: Listener?
    private var links: [Link] = []
    private var pendingPeak = 0
    /// Told, with the greatest output that ever waited, when a client has gone.
    var onGone: (Int) -> Void = { _ in }
    var port: UInt16 { listener?.port ?? 0 }

    init(_ loop: Loop, tls: TLSServerContext? = nil) throws {
        listener = try Listener(loop: loop, tls: tls) { [unowned self] link in
            link.delegate = self
            self.links.append(link)
        }
    }

    func linkDidOpen(_ link: Link) {}

    func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) {
        link.write(bytes)
        pendingPeak = max(pendingPeak, link.pendingOutputBytes)
        if link.isFull { link.pauseReading() }
    }

    func linkDidDrain(_ link: Link) { link.resumeReading() }

    func link(_ link: Link, didClose reason: LinkFault) {
        links.removeAll { $0 === link }
        onGone(pendingPeak)
    }

    func closeAll() {
        for link in links { link.close() }
        links = []
    }
}

/// Sends a known stream of bytes while the link takes them, and checks that the same stream comes back.
final class StreamChecker: LinkDelegate {
    private let total: Int
    private let facts: Facts<String>
    private let block: [UInt8]
    private var sent = 0
    private var received = 0
    private(set) var pendingPeak = 0
    let link: Link

    init(_ link: Link, total: Int, seed: UInt64, _ facts: Facts<String>) {
        self.link = link
        self.total = total
        self.facts = facts
        var random = SeededGenerator(seed: seed)
        // A prime length, so that a shift by any usual block size shows.
        block = (0..<65_521).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        link.delegate = self
    }

    func linkDidOpen(_ link: Link) { fill() }
    func linkDidDrain(_ link: Link) { fill() }

    func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) {
        var at = 0
        while at < bytes.count {
            let start = received % block.count
            let count = min(bytes.count - at, block.count - start)
            let isSame = block.withUnsafeBytes { expected in
                guard let left = expected.baseAddress, let right = bytes.baseAddress else { return false }
                return memcmp(left + start, right + at, count) == 0
            }
            guard isSame else {
                facts.record("wrong bytes near \(received)")
                return link.close()
            }
            at += count
            received += count
        }
        guard received == total else { return }
        // One block may be added while the output is just not full.
        let isBounded = pendingPeak <= link.highWaterBytes + block.count
        facts.record(isBounded ? "all came back" : "the output grew to \(pendingPeak)")
    }

    func link(_ link: Link, didClose reason: LinkFault) { facts.record("closed: \(reason)") }

    private func fill() {
        while sent < total, !link.isFull {
            let start = sent % block.count
            let count = min(total - sent, block.count - start)
            block[start..<start + count].withUnsafeBytes { link.write($0) }
            sent += count
            pendingPeak = max(pendingPeak, link.pendingOutputBytes)
        }
    }
}
