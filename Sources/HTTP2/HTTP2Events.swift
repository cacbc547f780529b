// SPDX-License-Identifier: Apache-2.0
/// A stream in its owner's view.
public struct HTTP2Stream: Equatable, Sendable {
    /// The stream id.
    public let id: Int32
    /// The owner's value for the stream: given to `submitRequest`, or set with `setTag` on a server; else 0.
    public let tag: UInt64

    /// Creates a stream from both parts.
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

    /// The RFC's name, or the number of an unknown code.
    public var description: String {
        Self.names.indices.contains(Int(rawValue)) ? Self.names[Int(rawValue)] : "0x" + String(rawValue, radix: 16)
    }
}

/// The end of a stream. Every submitted request ends in exactly one of these.
public enum StreamEnd: Equatable, Sendable {
    /// Closed by either end; `noError` after a complete exchange, else the code of the RST_STREAM.
    case closed(HTTP2ErrorCode)
    /// The peer certainly did not process the request. It may be sent again at once on another connection.
    case unprocessed(Unprocessed)
    /// The connection ended during the request. Whether it was processed is unknown.
    case lost

    /// The proof that a request was not processed (RFC 9113 sections 6.8 and 8.7).
    public enum Unprocessed: Equatable, Sendable {
        /// RST_STREAM with REFUSED_STREAM.
        case refused
        /// Above the last stream of the peer's GOAWAY.
        case aboveGoAway
        /// Its HEADERS, or the last byte of its body, never left this session.
        case notSent
    }
}

/// The peer's current SETTINGS that matter to an owner.
public struct PeerSettings: Equatable, Sendable {
    /// Maximum number of open streams to the peer; `UInt32.max` without a limit.
    public let maxConcurrentStreams: UInt32
    /// Window of a new stream in bytes.
    public let initialWindowBytes: UInt32
    /// Largest frame payload.
    public let maxFrameBytes: UInt32
    /// HPACK table bound.
    public let headerTableBytes: UInt32
    /// Advisory limit of a header list; `UInt32.max` without one.
    public let maxHeaderListBytes: UInt32

    /// Creates settings. The defaults are the protocol's.
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

/// A received GOAWAY.
public struct GoAway: Equatable, Sendable {
    /// Streams above it were not processed.
    public let lastStreamID: Int32
    public let code: HTTP2ErrorCode
    /// The peer's debug bytes, cut at `goAwayBytesMax`. APNs sends `{"reason": …}`.
    public let debug: [UInt8]

    /// Creates a GOAWAY from all parts.
    public init(lastStreamID: Int32, code: HTTP2ErrorCode, debug: [UInt8]) {
        self.lastStreamID = lastStreamID
        self.code = code
        self.debug = debug
    }
}
