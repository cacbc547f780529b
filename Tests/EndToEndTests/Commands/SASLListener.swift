// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Support

/// The part of a Kafka broker that comes before all else: it tells its versions and its SASL mechanisms, and takes nobody's
/// password. In the protocol's own bytes (ApiVersions 0-2, SaslHandshake 1, SaslAuthenticate 0), as Apache Kafka answers.
final class SASLListener: LinkDelegate {
    private var listener: Listener?
    private var links: [ObjectIdentifier: (link: Link, unread: [UInt8])] = [:]
    /// What it takes logins by.
    private let mechanism: String

    init(loop: Loop, mechanism: String) throws(LoopFault) {
        self.mechanism = mechanism
        listener = try Listener(loop: loop) { [unowned self] link in
            link.delegate = self
            links[ObjectIdentifier(link)] = (link, [])
        }
    }

    var port: UInt16 { listener?.port ?? 0 }

    func linkDidOpen(_ link: Link) {}

    func link(_ link: Link, didClose reason: LinkFault) { links[ObjectIdentifier(link)] = nil }

    func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) {
        links[ObjectIdentifier(link)]?.unread += Array(bytes)
        while let unread = links[ObjectIdentifier(link)]?.unread, unread.count >= 12 {
            let size = 4 + unread[..<4].reduce(0) { $0 << 8 | Int($1) }
            guard unread.count >= size else { return }
            links[ObjectIdentifier(link)]?.unread.removeFirst(size)
            answer(link, key: unread[5], version: unread[7], correlation: Array(unread[8..<12]))
        }
    }

    private func answer(_ link: Link, key: UInt8, version: UInt8, correlation: [UInt8]) {
        var body = correlation
        switch (key, version) {
        // UNSUPPORTED_VERSION, and which are known (KIP-511).
        case (18, 3...): body += [0, 35] + [0, 0, 0, 1] + [0, 18, 0, 0, 0, 2]
        case (18, _):
            let known: [[UInt8]] = [[0, 3, 0, 1], [0, 17, 0, 1], [0, 18, 0, 2], [0, 36, 0, 0]]
            body += [0, 0] + [0, 0, 0, UInt8(known.count)]
            for entry in known { body += entry[..<2] + [0, entry[2]] + [0, entry[3]] }
            if version > 0 { body += [0, 0, 0, 0] }
        // 33: UNSUPPORTED_SASL_MECHANISM; librdkafka asks for PLAIN in these tests.
        case (17, _): body += [0, mechanism == "PLAIN" ? 0 : 33] + [0, 0, 0, 1] + Self.text(mechanism)
        // SASL_AUTHENTICATION_FAILED with Apache Kafka's words, no bytes.
        case (36, _):
            body += [0, 58] + Self.text("Authentication failed: Invalid username or password") + [0, 0, 0, 0]
        default: return link.close()
        }
        link.write([0, 0, UInt8(body.count >> 8), UInt8(body.count & 255)] + body)
    }

    private static func text(_ text: String) -> [UInt8] { [0, UInt8(text.utf8.count)] + Array(text.utf8) }
}
