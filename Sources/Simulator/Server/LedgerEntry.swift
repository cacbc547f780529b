/// One request as the simulator saw it: a ledger line in memory.
public struct LedgerEntry: Sendable, Equatable {
    /// When the answer was decided, Unix ms.
    public let atMs: Int64
    /// Number of the connection, from 1.
    public let connection: Int
    public let stream: Int32
    /// Device token as in the path.
    public let token: String
    /// As answered: the sender's, or one made up.
    public let apnsID: String
    /// The `apns-…` headers that came, and `authorization` as a short hash.
    public let headers: [String: String]
    /// The body, cut at the size that is kept.
    public let payload: [UInt8]
    /// Size of the whole body.
    public let bytes: Int
    /// Absent where a fault took the answer's place.
    public let status: Int?
    public let reason: String?
    /// What a scenario did instead of, or beside, an answer; `gone` where the client left before its answer.
    public let fault: String?
    /// Whether an answer was sent.
    public let answered: Bool

    static let headerFields: [RequestHead.Field] = [
        .authorization, .topic, .pushType, .identifier, .expiration, .priority, .collapseID, .channelID,
    ]

    init(_ record: Ledger.Record, head: RequestHead, body: [UInt8], atMs: Int64) {
        self.atMs = atMs
        connection = record.connection
        stream = record.stream
        token = head[.path].flatMap { RequestCheck.token(path: $0) }.map { String(decoding: $0, as: UTF8.self) } ?? ""
        apnsID = String(decoding: record.apnsID, as: UTF8.self)
        var headers: [String: String] = [:]
        for field in Self.headerFields {
            guard let value = head.text(field) else { continue }
            headers[field.name.description] = field == .authorization ? record.maskedAuthorization : value
        }
        self.headers = headers
        payload = body
        bytes = record.bytes
        status = record.status
        reason = record.reason
        fault = record.fault
        answered = record.answered
    }
}
