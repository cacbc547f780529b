public import Crypto

/// How a simulator listens, whom it knows and how its connections behave.
public struct SimulatorConfiguration: Sendable {
    /// Numeric address to listen on.
    public var host = "127.0.0.1"
    /// Port to listen on; 0 lets the system choose.
    public var port: UInt16 = 0
    /// Certificate and key of the TLS server, with ALPN `h2`; nil speaks HTTP/2 without TLS (for measurements only).
    public var certificate: MintedCertificate?
    /// Bundle identifiers that exist; empty allows any.
    public var topics: [String] = []
    /// Provider keys that exist; empty asks for no token, as with a client certificate.
    public var keys: [ProviderKey] = []
    /// Streams allowed before the first accepted push, where tokens are asked for.
    ///
    /// "APNs allows only one stream for each connection until you post a request with a valid authentication token."
    public var streamsAtStart: UInt32 = 1
    /// Streams allowed afterwards.
    public var streamsMax: UInt32 = 1000
    /// Answers as the development server does: an acceptance has `apns-unique-id`, by which the Push Notifications Console
    /// finds it ("available only in the Development environment": "Handling notification responses from APNs").
    public var isDevelopment = false
    /// Shrinks the limit to one stream after a rejection, until the next accepted push (openradar 27870881).
    public var shrinksOnRejection = false
    /// Window for all request bodies of a connection together; APNs leaves it at 65 535.
    public var connectionWindowBytes: Int32 = 65_535
    /// Rules beside ordinary answers.
    public var scenario = Scenario()
    /// What is written down of each request.
    public var ledger = LedgerMode.off

    /// The defaults above.
    public init() {}
}

/// What a simulator writes down of each request; counters are kept always.
public enum LedgerMode: Sendable, Equatable {
    /// Nothing: for measurements.
    case off
    /// Entries in memory, to be read back by a test. Unbounded.
    case memory
    /// NDJSON lines appended to a file (contract section 10).
    case file(String)
    /// Both.
    case fileAndMemory(String)
}
