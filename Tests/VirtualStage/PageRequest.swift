// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Processes

/// One request for a page of the operator's, over the network of the world.
final class PageRequest: LinkDelegate {
    private let path: String
    private var link: Link?
    private var received: [UInt8] = []
    private(set) var hasEnded = false

    /// On the loop, as its release.
    init(_ path: String, port: UInt16, loop: Loop) {
        self.path = path
        let link = Link(loop: loop, to: .tcp(host: "127.0.0.1", port: port))
        link.delegate = self
        self.link = link
        link.open()
    }

    func linkDidOpen(_ link: Link) {
        link.write(Array("GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8))
    }

    func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) { received += bytes }

    func link(_ link: Link, didClose reason: LinkFault) { hasEnded = true }

    var answer: HTTPClient.Answer { get throws { try HTTPClient.Answer(parsing: received) } }
}
