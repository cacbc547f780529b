import CNghttp2

/// Why a session cannot go on, or why a frame could not be submitted.
public struct HTTP2Fault: Error, Equatable, CustomStringConvertible {
    /// What kind of fault it is.
    public enum Code: Sendable {
        /// The session as a whole is broken: close the connection.
        case session
        /// Stream numbers are used up, or a GOAWAY was sent or received: open another connection for new requests.
        case noMoreRequests
        /// The stream named does not exist or is closed already; harmless after a race with the peer.
        case noSuchStream
        /// A header name or value may not travel in HTTP/2.
        case badHeader
        /// nghttp2 refused a call that should always work (out of memory).
        case library
    }

    /// The kind.
    public let code: Code
    /// nghttp2's own code; 0 where the fault was found here.
    public let libraryCode: Int32
    private let detail: String?

    init(_ code: Code, library: Int32 = 0, detail: String? = nil) {
        self.code = code
        self.libraryCode = library
        self.detail = detail
    }

    /// What happened, for a log line. Holds no header values and no body bytes.
    public var description: String {
        let library = libraryCode == 0 ? nil : String(cString: nghttp2_strerror(libraryCode))
        return [detail, library].compactMap(\.self).joined(separator: ": ")
    }

    public static func == (left: HTTP2Fault, right: HTTP2Fault) -> Bool {
        left.code == right.code && left.libraryCode == right.libraryCode
    }

    /// Classifies what a submit call returned.
    static func submit(_ result: Int32) -> HTTP2Fault {
        switch result {
        case NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE.rawValue, NGHTTP2_ERR_START_STREAM_NOT_ALLOWED.rawValue,
            NGHTTP2_ERR_PROTO.rawValue:
            HTTP2Fault(.noMoreRequests, library: result)
        case NGHTTP2_ERR_INVALID_ARGUMENT.rawValue, NGHTTP2_ERR_STREAM_CLOSED.rawValue,
            NGHTTP2_ERR_DATA_EXIST.rawValue:
            HTTP2Fault(.noSuchStream, library: result)
        default:
            HTTP2Fault(.library, library: result)
        }
    }
}
