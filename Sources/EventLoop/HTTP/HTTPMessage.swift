/// What an operator's client asked for.
public struct HTTPRequest: Sendable, Equatable {
    /// The path as it was sent, without query.
    public let path: String
    /// What stood after `?`, still percent-encoded; nil without one.
    public let query: String?
}

/// What a handler answers.
public struct HTTPResponse: Sendable, Equatable {
    public var status: Int
    public var contentType: String
    public var body: [UInt8]

    public init(status: Int = 200, contentType: String = "text/plain; charset=utf-8", body: [UInt8]) {
        self.status = status
        self.contentType = contentType
        self.body = body
    }

    /// A short answer in words.
    public init(status: Int = 200, text: String) {
        self.init(status: status, body: Array(text.utf8))
    }
}
