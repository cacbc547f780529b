// SPDX-License-Identifier: Apache-2.0
/// Gives the answer to one request, now or in a later turn of the loop.
///
/// If the client has left, the answer is dropped. A responder that is released without an answer sends 500.
public final class HTTPResponder {
    private let loop: Loop
    private weak var connection: HTTPConnection?
    /// The number of the request on its connection.
    private let number: UInt64

    init(loop: Loop, connection: HTTPConnection, number: UInt64) {
        self.loop = loop
        self.connection = connection
        self.number = number
    }

    deinit {
        loop.assertReleasable()
        connection?.answer(number, HTTPResponse(status: 500, text: "no answer\n"))
    }

    /// The request's turn has come. Returns false if the client has left.
    func begin() -> Bool { connection?.begin(number) ?? false }

    /// Sends the answer. Only the first call counts.
    public func respond(_ response: HTTPResponse) {
        loop.assertOnLoop()
        connection?.answer(number, response)
        connection = nil
    }
}
