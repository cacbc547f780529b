// SPDX-License-Identifier: Apache-2.0
/// One request as the simulator received it: a ledger line in memory.
public struct LedgerEntry: Sendable, Equatable {
    /// Time of the answer's decision, Unix ms.
    public let atMs: Int64
    /// Number of the connection, from 1.
    public let connection: Int
    public let stream: Int32
    /// Device token from the path.
    public let token: String
    /// The id in the answer: the sender's, or a generated one.
    public let apnsID: String
    /// The received `apns-…` headers, and a short hash of `authorization`.
    public let headers: [String: String]
    /// The body, cut to the kept size.
    public let payload: [UInt8]
    /// Size of the whole body.
    public let bytes: Int
    /// Absent if a fault replaced the answer.
    public let status: Int?
    public let reason: String?
    /// The scenario's fault; `gone` if the client left before its answer.
    public let fault: String?
    /// Whether an answer was sent.
    public let answered: Bool
    /// How long the request waited for its answer: the delay of the scenario.
    public let delayMs: Int64

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
        delayMs = record.delayMs
    }
}
