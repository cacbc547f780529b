// SPDX-License-Identifier: Apache-2.0
// Calls of a virtual system to a link, in turns of its loop.
extension Link {
    /// The name's numeric addresses; nil if no name server answers.
    package func didResolve(_ hosts: [String]?) {
        guard case .tcp(let host, let port) = endpoint else { return }
        guard let hosts else { return resolved(.failure(LinkFault(.dns, "no name server answers for '\(host)'"))) }
        resolved(.success(hosts.compactMap { SocketAddress(numericHost: $0, port: port) }))
    }

    /// The attempt over this stream has succeeded, or failed.
    package func didConnect(_ stream: any VirtualStream, _ fault: LinkFault?) {
        guard stage == .connecting, stream === self.stream else { return }
        if let fault { return connectNext(fault) }
        addresses = []
        connected()
    }

    /// Whether the link would take bytes, or the end of the stream, now.
    package var isReading: Bool { stage == .open && !isReadPaused }

    /// Whether output waits for room.
    package var isWaitingForRoom: Bool { stage == .open && isWriteBlocked }

    /// The stream has something to read.
    package func comeUpToRead() { readable() }

    /// The stream has room.
    package func comeUpToWrite() { writable() }
}
