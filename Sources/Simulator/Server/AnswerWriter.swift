// SPDX-License-Identifier: Apache-2.0
import EventLoop
import HTTP2
import JSON

/// Writes the two forms of an APNs answer. It keeps them as header lists and changes only the differing fields.
final class AnswerWriter {
    private static let status = 0
    private static let identifier = 1

    /// The request properties that an answer needs.
    struct Request {
        /// The sender's identifier, or the generated one.
        var apnsID: ArraySlice<UInt8>
        /// `apns-unique-id`; nil outside the development environment.
        var uniqueID: [UInt8]?
        /// RFC 9110 section 9.3.2: the answer has no content.
        var isHead: Bool
        /// The present time, Unix s.
        var wallSeconds: Int
    }

    private var accepted = HeaderList(reserving: 256)
    private var rejected = HeaderList(reserving: 256)
    private var body = JSONWriter()

    init() throws(HTTP2Fault) {
        try accepted.append(":status", "200")
        try accepted.append("apns-id", "0", indexing: .never)
        try rejected.append(":status", "400")
        try rejected.append("apns-id", "0", indexing: .never)
    }

    /// Queues an answer. A fault means that the client reset the stream.
    func send(
        _ answer: ScenarioAnswer, to request: Request, on session: HTTP2Session, stream: Int32
    ) throws(HTTP2Fault) {
        let apnsID = request.apnsID
        if answer.isPlain, request.uniqueID == nil {
            guard apnsID.withUnsafeBytes({ accepted.set(Self.identifier, $0) }) else { return }
            return try session.submitResponse(stream, accepted)
        }
        rejected.truncate(to: Self.identifier + 1)
        guard rejected.set(Self.status, Array(String(answer.status).utf8)),
            apnsID.withUnsafeBytes({ rejected.set(Self.identifier, $0) })
        else { return }
        if let seconds = answer.retryAfterSeconds {
            let text =
                answer.retryAfterIsDate ? HTTPResponse.date(seconds: request.wallSeconds + seconds) : String(seconds)
            try rejected.append("retry-after", text)
        }
        if let id = request.uniqueID, answer.status == 200 {
            try rejected.append("apns-unique-id", id, indexing: .never)
        }
        let content = body(of: answer)
        if request.isHead { try rejected.append("content-length", String(content.count)) }
        try session.submitResponse(
            stream, rejected, body: request.isHead ? [] : content, pieceBytes: answer.splitBytes)
    }

    /// Queues the answer to a channel request.
    func send(
        _ reply: ChannelDirectory.Reply, requestID: [UInt8], isHead: Bool, on session: HTTP2Session, stream: Int32
    ) throws(HTTP2Fault) {
        var headers = HeaderList(reserving: 256)
        try headers.append(":status", String(reply.status))
        try headers.append("apns-request-id", requestID, indexing: .never)
        if let channel = reply.channel { try headers.append("apns-channel-id", channel, indexing: .never) }
        var content = reply.body
        if let reason = reply.reason {
            body.clear()
            body.beginObject()
            body.member("reason", reason)
            body.endObject()
            content = body.bytes
        }
        try session.submitResponse(stream, headers, body: isHead ? [] : content)
    }

    private func body(of answer: ScenarioAnswer) -> [UInt8] {
        var size = 0
        switch answer.body {
        case .raw(let bytes): return bytes
        case .padded(let bytes): size = bytes
        case .json where answer.status == 200: return []
        case .json: break
        }
        body.clear()
        body.beginObject()
        body.member("reason", ifPresent: answer.reason)
        if let timestamp = answer.timestampMs { body.member("timestamp", timestamp) }
        // The member around the padding takes at most ten bytes, and the brace one.
        if size > 0 { body.member("pad", String(repeating: "x", count: max(0, size - body.count - 10))) }
        body.endObject()
        return body.bytes
    }
}
