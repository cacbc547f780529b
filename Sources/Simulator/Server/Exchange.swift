// SPDX-License-Identifier: Apache-2.0
import APNsProtocol

/// One request on a connection, from its headers to the end of its stream. Its buffers are reused.
struct Exchange {
    enum State {
        /// No stream. Free for the next.
        case free
        /// Headers received, body incomplete.
        case receiving
        /// Complete. Its answer is delayed.
        case waiting
        /// In the ledger. Nothing more is sent.
        case settled
    }

    /// Body bytes kept. A longer body is only counted, because it exceeds the limit of every push type.
    static let bodyBytesMax = 8192

    var state = State.free
    var stream: Int32 = 0
    var head = RequestHead()
    var body: [UInt8] = []
    var bytes = 0
    var type = PushType.alert
    var isObject = false
    var fingerprint: String?
    /// The identifier generated for a request without one.
    var madeID: [UInt8]?
    /// The delayed answer.
    var answer = ScenarioAnswer()

    mutating func begin(stream: Int32) {
        state = .receiving
        self.stream = stream
        head.clear()
        body.removeAll(keepingCapacity: true)
        bytes = 0
        isObject = false
        fingerprint = nil
        madeID = nil
        answer = ScenarioAnswer()
    }

    mutating func take(_ data: UnsafeRawBufferPointer) {
        bytes += data.count
        let room = Self.bodyBytesMax - body.count
        if room > 0 { body.append(contentsOf: data.prefix(room)) }
    }
}
