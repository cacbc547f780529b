/// Hears what happens in a session.
///
/// Called on the owner's thread, from inside `receive`, `drainOutput` or `abandon`, but never from inside nghttp2: every
/// method may submit requests and responses, reset streams and send GOAWAY. It may not call `receive`. Views given to
/// a method end with it.
public protocol HTTP2SessionDelegate: AnyObject {
    /// The final header list of a response (client), or the header list of a request (server).
    ///
    /// Informational responses (1xx) are skipped and trailers are not reported; a stream that ends in trailers gives an
    /// empty last chunk.
    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveHeaders fields: borrowing HeaderFields, endStream: Bool)

    /// A piece of a body. With `endStream` nothing follows; the piece may then be empty.
    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveData bytes: UnsafeRawBufferPointer, endStream: Bool)

    /// The stream is over. Exactly once per stream, and the last event of it.
    func http2(_ session: HTTP2Session, stream: HTTP2Stream, didEnd end: StreamEnd)

    /// SETTINGS arrived, now in force.
    func http2(_ session: HTTP2Session, didReceiveSettings settings: PeerSettings)

    /// GOAWAY arrived. The ends of streams above its last stream follow as events of their own.
    func http2(_ session: HTTP2Session, didReceiveGoAway goAway: GoAway)

    /// A PING of this end was answered.
    func http2(_ session: HTTP2Session, didReceivePingAck opaque: UInt64)
}
