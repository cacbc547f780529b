// SPDX-License-Identifier: Apache-2.0
/// The end of the connection that a session implements.
public enum HTTP2Role: Sendable {
    case client
    case server
}

/// SETTINGS that this end announces. Nil keeps the protocol's default (RFC 9113 section 6.5.2).
public struct HTTP2Settings: Sendable, Equatable {
    /// Maximum number of the peer's open streams.
    public var maxConcurrentStreams: UInt32?
    /// Body bytes that the peer may send on one stream before a window update. Default 65 535.
    public var initialWindowBytes: UInt32?
    /// Largest frame payload accepted, 16 384 ... 16 777 215.
    public var maxFrameBytes: UInt32?
    /// Size of the HPACK table for the peer's encoder. Default 4 096.
    public var headerTableBytes: UInt32?
    /// Advisory limit of a header list.
    public var maxHeaderListBytes: UInt32?

    /// Creates settings with all defaults.
    public init() {}
}

/// Limits of one session, all fixed at its creation.
public struct HTTP2Configuration: Sendable {
    /// The content of the first SETTINGS frame.
    public var settings = HTTP2Settings()
    /// Streams a client assumes until the peer's SETTINGS arrives.
    ///
    /// nghttp2 would assume 100. APNs allows one until the first accepted token ("Establishing a token-based
    /// connection to APNs"), so one is the default.
    public var streamsBeforeSettings: UInt32 = 1
    /// Flow-control window for the bodies of all streams together, in bytes; at least 65 535.
    public var connectionWindowBytes: Int32 = 65_535
    /// Whether the window of received body bytes is returned. False imitates a peer that never does, for tests.
    public var returnsWindow = true
    /// Accepted header bytes per message (RFC 9113 size, 32 added per field). The rest of a response's headers is
    /// dropped; a request with more is reset.
    public var headerListBytesMax = 16_384
    /// Header bytes of one message, counted the same way, beyond which a client ends the connection: a few bytes on the wire
    /// can name any number of them (HPACK bomb). The answer counts by its status.
    public var headerBombBytes = 65_536
    /// Maximum number of unsent SETTINGS and PING acknowledgements before the peer counts as flooding.
    public var acksQueuedMax = 64
    /// Entries of one SETTINGS frame before the peer counts as flooding.
    public var settingsEntriesMax = 32
    /// Maximum number of kept GOAWAY debug bytes.
    public var goAwayBytesMax = 1024
    /// Resets by a client that a server accepts in a burst, and per second (CVE-2023-44487).
    public var resetBurst: UInt64 = 1000
    public var resetsPerSecond: UInt64 = 33

    /// Creates the defaults above.
    public init() {}
}
