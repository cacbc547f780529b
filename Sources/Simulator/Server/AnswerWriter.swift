import HTTP2
import JSON

/// The two shapes of an APNs answer, kept as header lists so that an answer writes only what differs.
final class AnswerWriter {
    private static let status = 0
    private static let identifier = 1

    private var accepted = HeaderList(reserving: 256)
    private var rejected = HeaderList(reserving: 256)
    private var body = JSONWriter()

    init() throws(HTTP2Fault) {
        try accepted.append(":status", "200")
        try accepted.append("apns-id", "0", indexing: .never)
        try rejected.append(":status", "400")
        try rejected.append("apns-id", "0", indexing: .never)
    }

    /// Queues an answer. Faults mean that the client left the stream meanwhile.
    func send(
        _ answer: ScenarioAnswer, apnsID: ArraySlice<UInt8>, on session: HTTP2Session, stream: Int32
    ) throws(HTTP2Fault) {
        if answer.status == 200, answer.retryAfterSeconds == nil {
            guard apnsID.withUnsafeBytes({ accepted.set(Self.identifier, $0) }) else { return }
            return try session.submitResponse(stream, accepted)
        }
        rejected.truncate(to: Self.identifier + 1)
        guard rejected.set(Self.status, Array(String(answer.status).utf8)),
            apnsID.withUnsafeBytes({ rejected.set(Self.identifier, $0) })
        else { return }
        if let seconds = answer.retryAfterSeconds { try rejected.append("retry-after", String(seconds)) }
        body.clear()
        body.beginObject()
        body.member("reason", ifPresent: answer.reason)
        if let timestamp = answer.timestampMs { body.member("timestamp", timestamp) }
        body.endObject()
        try session.submitResponse(stream, rejected, body: answer.status == 200 ? [] : body.bytes)
    }
}
