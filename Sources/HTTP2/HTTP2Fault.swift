// SPDX-License-Identifier: Apache-2.0
import CNghttp2

/// The reason why a session cannot continue, or why a frame could not be submitted.
public struct HTTP2Fault: Error, Equatable, CustomStringConvertible {
    /// The kind of fault.
    public enum Code: Sendable {
        /// The session as a whole is broken: close the connection.
        case session
        /// Stream ids are used up, or a GOAWAY was sent or received: open another connection for new requests.
        case noMoreRequests
        /// The stream does not exist or is closed. Harmless after a race with the peer.
        case noSuchStream
        /// A header name or value is not valid in HTTP/2.
        case badHeader
        /// nghttp2 refused a call that should always work (out of memory).
        case library
    }

    /// The kind.
    public let code: Code
    /// nghttp2's own code; 0 for faults found by this module.
    public let libraryCode: Int32
    private let detail: String?

    init(_ code: Code, library: Int32 = 0, detail: String? = nil) {
        self.code = code
        self.libraryCode = library
        self.detail = detail
    }

    /// Description for a log line. Contains no header values and no body bytes.
    public var description: String {
        let library = libraryCode == 0 ? nil : String(cString: nghttp2_strerror(libraryCode))
        return [detail, library].compactMap(\.self).joined(separator: ": ")
    }

    public static func == (left: HTTP2Fault, right: HTTP2Fault) -> Bool {
        left.code == right.code && left.libraryCode == right.libraryCode
    }

    /// Converts the result of a submit call.
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
