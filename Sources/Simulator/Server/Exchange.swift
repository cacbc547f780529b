import APNsProtocol

/// One request on a connection, from its headers to the end of its stream. Its buffers are used again.
struct Exchange {
    enum State {
        /// No stream; free for the next.
        case free
        /// Headers came, the body is coming.
        case receiving
        /// Whole; its answer is due later.
        case waiting
        /// In the ledger; nothing more is to be said.
        case settled
    }

    /// Body bytes kept; a longer body is counted only, since it is too large for every push type anyway.
    static let bodyBytesMax = 8192

    var state = State.free
    var stream: Int32 = 0
    var head = RequestHead()
    var body: [UInt8] = []
    var bytes = 0
    var type = PushType.alert
    var isObject = false
    var fingerprint: String?
    /// The identifier made up for a request that brought none.
    var madeID: [UInt8]?
    /// What a waiting exchange will be told.
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
    }

    mutating func take(_ data: UnsafeRawBufferPointer) {
        bytes += data.count
        let room = Self.bodyBytesMax - body.count
        if room > 0 { body.append(contentsOf: data.prefix(room)) }
    }
}
