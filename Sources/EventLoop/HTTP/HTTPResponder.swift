/// The one answer that a request still waits for, given now or in a later turn of the loop.
///
/// A client that goes away meanwhile is no fault: the answer is then dropped. A responder released unanswered says 500.
public final class HTTPResponder {
    private let loop: Loop
    private weak var connection: HTTPConnection?
    /// Which request of the connection this answers.
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

    /// Answers; the first call counts.
    public func respond(_ response: HTTPResponse) {
        loop.assertOnLoop()
        connection?.answer(number, response)
        connection = nil
    }
}
