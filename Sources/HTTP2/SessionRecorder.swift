// SPDX-License-Identifier: Apache-2.0
import CNghttp2

/// The facts that nghttp2's callbacks record. They are handled only after nghttp2 has returned.
struct SessionRecorder {
    /// One event, in order. `slot` is the stream's index in the table.
    enum Fact {
        case headers(slot: Int, fields: Range<Int>, bytes: Range<Int>, status: Int, endStream: Bool)
        case data(slot: Int, bytes: Range<Int>, endStream: Bool)
        case ended(slot: Int, StreamEnd)
        case settings
        case goAway(lastStreamID: Int32, code: UInt32, debug: Range<Int>)
        case pingAck(UInt64)
    }

    /// Facts with the bytes they refer to.
    struct Batch {
        var facts: [Fact] = []
        var fields: [HeaderFields.Field] = []
        var arena: [UInt8] = []

        /// Removes all facts. The memory is kept unless a burst made it large.
        mutating func clear() {
            facts.removeAll(keepingCapacity: facts.capacity <= 8192)
            fields.removeAll(keepingCapacity: fields.capacity <= 16_384)
            arena.removeAll(keepingCapacity: arena.capacity <= 262_144)
        }
    }

    var inbox = Batch()
    var streams = StreamTable()
    /// Largest DATA frame of an answer that is sent in pieces, by stream; servers only.
    var bodyPieces: [Int32: Int] = [:]
    /// This client's highest stream with sent HEADERS.
    var lastSentStreamID: Int32 = 0
    /// Last stream of the lowest received GOAWAY.
    var goAwayStreamID = Int32.max
    /// nghttp2's last message about a misbehaving peer.
    var complaint: String?

    private let isServer: Bool
    private let headerListBytesMax: Int
    private let headerBombBytes: Int
    private let goAwayBytesMax: Int

    // The header list being received. HEADERS of two streams never interleave (RFC 9113 section 4.3). Separate from the
    // inbox, because a list split into CONTINUATION frames may span several reads.
    private var collecting = -1
    private var listFields: [HeaderFields.Field] = []
    private var listText: [UInt8] = []
    private var listBytes = 0
    private var status = 0

    init(role: HTTP2Role, configuration: HTTP2Configuration) {
        isServer = role == .server
        headerListBytesMax = configuration.headerListBytesMax
        headerBombBytes = configuration.headerBombBytes
        goAwayBytesMax = configuration.goAwayBytesMax
    }

    mutating func beginHeaders(_ session: OpaquePointer?, stream: Int32, category: nghttp2_headers_category) {
        collecting = -1
        // Trailers count too: they are dropped, but each one costs.
        listBytes = 0
        let slot: Int
        if isServer {
            guard category == NGHTTP2_HCAT_REQUEST else { return }
            slot = streams.insert(id: stream, tag: 0, body: [])
            nghttp2_session_set_stream_user_data(session, stream, SlotPointer.make(slot))
        } else {
            slot = self.slot(session, stream)
            guard slot >= 0, !streams[slot].hasHeaders else { return }
        }
        collecting = slot
        listFields.removeAll(keepingCapacity: true)
        listText.removeAll(keepingCapacity: true)
        status = 0
    }

    /// The meaning of a field for its message.
    enum FieldStep {
        case goOn
        /// The list is longer than allowed, and its message cannot be understood without the rest.
        case resetStream
        /// The list is so long that it is an attack.
        case endConnection
    }

    /// Takes one field.
    ///
    /// In a response the status comes first (RFC 9113 section 8.3): the answer is complete with it, and the rest of a long
    /// list is left out. Without this rule a peer that adds headers to an acceptance would get the push again.
    mutating func header(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) -> FieldStep {
        listBytes &+= name.count &+ value.count &+ 32
        if !isServer, listBytes > headerBombBytes { return endConnection() }
        guard collecting >= 0 else { return .goOn }
        guard listBytes <= headerListBytesMax else {
            if !isServer, status != 0 { return .goOn }
            collecting = -1
            return .resetStream
        }
        // ":status" is the only name in a response that begins with a colon.
        if !isServer, name.first == 0x3A { status = Self.number(value) }
        let start = listText.count
        listText.append(contentsOf: name)
        listText.append(contentsOf: value)
        listFields.append(
            HeaderFields.Field(
                nameStart: UInt32(truncatingIfNeeded: start), nameCount: UInt32(truncatingIfNeeded: name.count),
                valueStart: UInt32(truncatingIfNeeded: start + name.count),
                valueCount: UInt32(truncatingIfNeeded: value.count)))
        return .goOn
    }

    /// Reports the result of the list, so that its answer counts by its status.
    private mutating func endConnection() -> FieldStep {
        complaint = "the peer sent more than \(headerBombBytes) bytes of headers in one message"
        if collecting >= 0 { collected(endStream: false) }
        return .endConnection
    }

    mutating func headersDone(_ session: OpaquePointer?, stream: Int32, endStream: Bool) {
        guard collecting >= 0 else {
            if endStream { bodyDone(session, stream: stream) }
            return
        }
        collected(endStream: endStream)
    }

    private mutating func collected(endStream: Bool) {
        let slot = collecting
        collecting = -1
        // An informational response is not the answer (RFC 9113 section 8.1).
        if !isServer, status < 200 { return }
        streams[slot].hasHeaders = true
        let firstField = inbox.fields.count
        let firstByte = inbox.arena.count
        inbox.fields.append(contentsOf: listFields)
        inbox.arena.append(contentsOf: listText)
        inbox.facts.append(
            .headers(
                slot: slot, fields: firstField..<inbox.fields.count, bytes: firstByte..<inbox.arena.count,
                status: status, endStream: endStream))
    }

    mutating func data(_ session: OpaquePointer?, stream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        let slot = slot(session, stream)
        guard slot >= 0 else { return }
        let start = inbox.arena.count
        inbox.arena.append(contentsOf: bytes)
        inbox.facts.append(.data(slot: slot, bytes: start..<inbox.arena.count, endStream: false))
    }

    mutating func bodyDone(_ session: OpaquePointer?, stream: Int32) {
        let slot = slot(session, stream)
        guard slot >= 0 else { return }
        if case .data(slot, let bytes, false)? = inbox.facts.last {
            inbox.facts[inbox.facts.count - 1] = .data(slot: slot, bytes: bytes, endStream: true)
        } else {
            inbox.facts.append(.data(slot: slot, bytes: 0..<0, endStream: true))
        }
    }

    mutating func closed(_ session: OpaquePointer?, stream: Int32, code: UInt32) {
        let slot = slot(session, stream)
        guard slot >= 0, !streams[slot].hasEnded else { return }
        streams[slot].hasEnded = true
        if isServer, !bodyPieces.isEmpty { bodyPieces[stream] = nil }
        // A request with an incomplete body cannot be processed. (Its answer may have arrived anyway.)
        let isWhole = streams[slot].body.isEmpty
        inbox.facts.append(
            .ended(slot: slot, end(stream: stream, code: HTTP2ErrorCode(rawValue: code), isWhole: isWhole)))
    }

    mutating func requestNotSent(stream: Int32) {
        guard let slot = streams.search(id: stream), !streams[slot].hasEnded else { return }
        streams[slot].hasEnded = true
        inbox.facts.append(.ended(slot: slot, .unprocessed(.notSent)))
    }

    mutating func goAway(lastStreamID: Int32, code: UInt32, debug: UnsafeBufferPointer<UInt8>) {
        goAwayStreamID = min(goAwayStreamID, lastStreamID)
        let start = inbox.arena.count
        inbox.arena.append(contentsOf: debug.prefix(goAwayBytesMax))
        inbox.facts.append(.goAway(lastStreamID: lastStreamID, code: code, debug: start..<inbox.arena.count))
    }

    /// Copies the rest of a body into nghttp2's frame; nil for an unknown stream.
    mutating func takeBody(slot: Int, stream: Int32, into target: UnsafeMutableRawBufferPointer) -> (Int, done: Bool)? {
        guard streams.holds(slot, id: stream) else { return nil }
        let sent = streams[slot].sent
        let total = streams[slot].body.count
        let count = min(target.count, total - sent)
        streams[slot].body.withUnsafeBytes { body in
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: body[sent..<(sent + count)]))
        }
        let done = sent + count == total
        streams[slot].sent = done ? 0 : sent + count
        if done { streams[slot].body = [] }
        return (count, done)
    }

    @inline(__always) private func slot(_ session: OpaquePointer?, _ stream: Int32) -> Int {
        let slot = SlotPointer.index(nghttp2_session_get_stream_user_data(session, stream))
        return streams.holds(slot, id: stream) ? slot : -1
    }

    private func end(stream: Int32, code: HTTP2ErrorCode, isWhole: Bool) -> StreamEnd {
        // Only this end's requests can be sent again. For a server the code is enough.
        guard !isServer else { return .closed(code) }
        if stream > lastSentStreamID { return .unprocessed(.notSent) }
        guard code == .refusedStream else { return isWhole ? .closed(code) : .unprocessed(.notSent) }
        return .unprocessed(stream > goAwayStreamID ? .aboveGoAway : .refused)
    }

    private static func number(_ digits: UnsafeBufferPointer<UInt8>) -> Int {
        var result = 0
        for digit in digits.prefix(3) where digit >= 0x30 && digit <= 0x39 { result = result * 10 + Int(digit - 0x30) }
        return result
    }
}

/// A table index stored in nghttp2's per-stream pointer. Never dereferenced; 0 means none.
enum SlotPointer {
    @inline(__always) static func make(_ slot: Int) -> UnsafeMutableRawPointer? {
        UnsafeMutableRawPointer(bitPattern: slot &+ 1)
    }

    @inline(__always) static func index(_ pointer: UnsafeMutableRawPointer?) -> Int {
        Int(bitPattern: pointer) &- 1
    }
}
