/// A stream as its owner knows it.
public struct HTTP2Stream: Equatable, Sendable {
    /// The number on the wire.
    public let id: Int32
    /// What the owner attached to the stream: given with `submitRequest`, or set with `setTag` on a server; else 0.
    public let tag: UInt64

    /// Both parts.
    public init(id: Int32, tag: UInt64) {
        self.id = id
        self.tag = tag
    }
}

/// An error code of RST_STREAM and GOAWAY (RFC 9113 section 7). Unknown codes keep their number.
public struct HTTP2ErrorCode: RawRepresentable, Equatable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static var noError: Self { Self(rawValue: 0x0) }
    public static var protocolError: Self { Self(rawValue: 0x1) }
    public static var internalError: Self { Self(rawValue: 0x2) }
    public static var flowControlError: Self { Self(rawValue: 0x3) }
    public static var settingsTimeout: Self { Self(rawValue: 0x4) }
    public static var streamClosed: Self { Self(rawValue: 0x5) }
    public static var frameSizeError: Self { Self(rawValue: 0x6) }
    public static var refusedStream: Self { Self(rawValue: 0x7) }
    public static var cancel: Self { Self(rawValue: 0x8) }
    public static var compressionError: Self { Self(rawValue: 0x9) }
    public static var connectError: Self { Self(rawValue: 0xA) }
    public static var enhanceYourCalm: Self { Self(rawValue: 0xB) }
    public static var inadequateSecurity: Self { Self(rawValue: 0xC) }
    public static var http11Required: Self { Self(rawValue: 0xD) }

    private static let names = [
        "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
        "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
    ]

    /// The RFC's name, or the number of a code it does not know.
    public var description: String {
        Self.names.indices.contains(Int(rawValue)) ? Self.names[Int(rawValue)] : "0x" + String(rawValue, radix: 16)
    }
}

/// How a stream ended. Every submitted request ends in exactly one of these.
public enum StreamEnd: Equatable, Sendable {
    /// Closed by either end; `noError` after a complete exchange, else the code of the RST_STREAM.
    case closed(HTTP2ErrorCode)
    /// The peer provably did nothing with the request: it may be sent again at once, elsewhere.
    case unprocessed(Unprocessed)
    /// The connection went while the request was under way: nobody knows whether it was processed.
    case lost

    /// Why a request is known not to have been processed (RFC 9113 sections 6.8 and 8.7).
    public enum Unprocessed: Equatable, Sendable {
        /// RST_STREAM with REFUSED_STREAM.
        case refused
        /// Above the last stream that the peer's GOAWAY names.
        case aboveGoAway
        /// Its HEADERS, or the last byte of its body, never left this session.
        case notSent
    }
}

/// The peer's current SETTINGS, as far as an owner acts on them.
public struct PeerSettings: Equatable, Sendable {
    /// Streams that may be open towards the peer; `UInt32.max` where it sets no limit.
    public let maxConcurrentStreams: UInt32
    /// Window of a new stream in bytes.
    public let initialWindowBytes: UInt32
    /// Largest frame payload.
    public let maxFrameBytes: UInt32
    /// HPACK table bound.
    public let headerTableBytes: UInt32
    /// Advised limit of a header list; `UInt32.max` where there is none.
    public let maxHeaderListBytes: UInt32

    /// Every setting; the defaults are the protocol's.
    public init(
        maxConcurrentStreams: UInt32, initialWindowBytes: UInt32 = 65_535, maxFrameBytes: UInt32 = 16_384,
        headerTableBytes: UInt32 = 4096, maxHeaderListBytes: UInt32 = .max
    ) {
        self.maxConcurrentStreams = maxConcurrentStreams
        self.initialWindowBytes = initialWindowBytes
        self.maxFrameBytes = maxFrameBytes
        self.headerTableBytes = headerTableBytes
        self.maxHeaderListBytes = maxHeaderListBytes
    }
}

/// A GOAWAY that arrived.
public struct GoAway: Equatable, Sendable {
    /// Streams above it were not processed.
    public let lastStreamID: Int32
    public let code: HTTP2ErrorCode
    /// The peer's debug bytes, cut at `goAwayBytesMax`; APNs puts `{"reason": …}` here.
    public let debug: [UInt8]

    /// All three parts.
    public init(lastStreamID: Int32, code: HTTP2ErrorCode, debug: [UInt8]) {
        self.lastStreamID = lastStreamID
        self.code = code
        self.debug = debug
    }
}
