/// Which end of the connection a session plays.
public enum HTTP2Role: Sendable {
    case client
    case server
}

/// SETTINGS that this end announces; nil leaves the protocol's default (RFC 9113 section 6.5.2).
public struct HTTP2Settings: Sendable, Equatable {
    /// Streams that the peer may have open towards this end.
    public var maxConcurrentStreams: UInt32?
    /// Body bytes that the peer may send on one stream before an update. Default 65 535.
    public var initialWindowBytes: UInt32?
    /// Largest frame payload accepted, 16 384 ... 16 777 215.
    public var maxFrameBytes: UInt32?
    /// HPACK table offered to the peer's encoder. Default 4 096.
    public var headerTableBytes: UInt32?
    /// Advisory limit of a header list.
    public var maxHeaderListBytes: UInt32?

    /// Settings with everything at its default.
    public init() {}
}

/// Limits of one session, all fixed at its creation.
public struct HTTP2Configuration: Sendable {
    /// What the first SETTINGS frame announces.
    public var settings = HTTP2Settings()
    /// Streams a client assumes until the peer's SETTINGS arrives.
    ///
    /// nghttp2 would assume 100. APNs allows one until the first accepted token ("Establishing a token-based
    /// connection to APNs"), so one is the default.
    public var streamsBeforeSettings: UInt32 = 1
    /// Window for the bodies of all streams together, in bytes; at least 65 535.
    public var connectionWindowBytes: Int32 = 65_535
    /// Whether the window of body bytes read is given back; false only plays a peer that hoards it.
    public var returnsWindow = true
    /// Header bytes (RFC 9113 size, 32 added per field) taken per message. Of a response what is beyond is left out; a
    /// request with more has its stream reset.
    public var headerListBytesMax = 16_384
    /// Header bytes of one message, counted the same way, beyond which a client ends the connection: a few bytes on the wire
    /// can name any number of them (HPACK bomb). The answer counts by its status.
    public var headerBombBytes = 65_536
    /// SETTINGS and PING acknowledgements that may wait unsent before the peer counts as flooding.
    public var acksQueuedMax = 64
    /// Entries of one SETTINGS frame before the peer counts as flooding.
    public var settingsEntriesMax = 32
    /// GOAWAY debug bytes kept; the rest is cut.
    public var goAwayBytesMax = 1024
    /// Resets by a client that a server endures at once, and their renewal per second (CVE-2023-44487).
    public var resetBurst: UInt64 = 1000
    public var resetsPerSecond: UInt64 = 33

    /// The defaults above.
    public init() {}
}
