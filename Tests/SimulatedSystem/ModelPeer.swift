// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// The server's end of a connection to a model.
package final class ModelPeer {
    private let connection: Connection
    /// Receives bytes.
    package var didReceive: ([UInt8]) -> Void = { _ in }
    /// The client has closed, or the network broke it.
    package var didClose: () -> Void = {}
    private var isClosed = false
    private var waiting: [UInt8] = []
    /// So many bytes of `waiting` are with the connection.
    private var written = 0

    init(_ connection: Connection) { self.connection = connection }

    /// Output waits for room.
    var isWaiting: Bool { !waiting.isEmpty }

    /// The host that connected.
    package var host: String { connection.clientHost }

    package func send(_ bytes: [UInt8]) {
        guard !isClosed, !bytes.isEmpty else { return }
        waiting += bytes
        flush()
    }

    package func close(isReset: Bool = false) {
        guard !isClosed else { return }
        isClosed = true
        connection.close(.server, isReset: isReset)
    }

    private func flush() {
        while written < waiting.count {
            let count = waiting.withUnsafeBytes {
                connection.write(UnsafeRawBufferPointer(rebasing: $0[written...]), from: .server)
            }
            if count == 0 { return }
            written += count
        }
        waiting = []
        written = 0
    }

    func comeUp() {
        flush()
        var received: [UInt8] = []
        var hasEnded = false
        withUnsafeTemporaryAllocation(byteCount: 64 * 1024, alignment: 1) { room in
            reading: while true {
                switch connection.read(at: .server, into: room) {
                case .bytes(let count): received.append(contentsOf: room[..<count])
                case .blocked: break reading
                case .ended:
                    hasEnded = true
                    break reading
                }
            }
        }
        if !received.isEmpty { didReceive(received) }
        guard hasEnded, !isClosed else { return }
        isClosed = true
        connection.close(.server, isReset: false)
        didClose()
    }
}
