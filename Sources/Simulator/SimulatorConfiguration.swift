// SPDX-License-Identifier: Apache-2.0
public import Crypto

/// Address, known apps and keys, and connection properties of a simulator.
public struct SimulatorConfiguration: Sendable {
    /// Numeric address to listen on.
    public var host = "127.0.0.1"
    /// Port to listen on; 0 for a free port.
    public var port: UInt16 = 0
    /// Certificate and key of the TLS server, with ALPN `h2`. Nil means HTTP/2 without TLS (for measurements only).
    public var certificate: MintedCertificate?
    /// Existing bundle identifiers; empty accepts any.
    public var topics: [String] = []
    /// Existing provider keys; empty requires no token, as with a client certificate.
    public var keys: [ProviderKey] = []
    /// Streams allowed before the first accepted push, if tokens are required.
    ///
    /// "APNs allows only one stream for each connection until you post a request with a valid authentication token."
    public var streamsAtStart: UInt32 = 1
    /// Streams allowed after the first accepted push.
    public var streamsMax: UInt32 = 1000
    /// Answers as the development server does: an acceptance has `apns-unique-id`, by which the Push Notifications
    /// Console finds it ("available only in the Development environment": "Handling notification responses from APNs").
    public var isDevelopment = false
    /// Limits the connection to one stream after a rejection, until the next accepted push (openradar 27870881).
    public var shrinksOnRejection = false
    /// Flow-control window for all request bodies of a connection. APNs keeps it at 65 535.
    public var connectionWindowBytes: Int32 = 65_535
    /// Rules for deviations from ordinary answers.
    public var scenario = Scenario()
    /// How requests are recorded.
    public var ledger = LedgerMode.off

    /// Creates the defaults above.
    public init() {}
}

/// How a simulator records requests. Counters are always kept.
public enum LedgerMode: Sendable, Equatable {
    /// No records, for measurements.
    case off
    /// Entries in memory, for tests. Unbounded.
    case memory
    /// NDJSON lines appended to a file (contract section 10).
    case file(String)
    /// Both.
    case fileAndMemory(String)
}
