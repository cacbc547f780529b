// SPDX-License-Identifier: Apache-2.0
/// Receives the events of a session.
///
/// Called on the owner's thread, inside `receive`, `drainOutput` or `abandon`, but never inside nghttp2. So every
/// method may submit requests and responses, reset streams and send GOAWAY, but it may not call `receive`. Views passed
/// to a method are valid only during the call.
public protocol HTTP2SessionDelegate: AnyObject {
    /// The final header list of a response (client), or the header list of a request (server).
    ///
    /// Informational responses (1xx) are skipped, and trailers are not reported. A stream that ends with trailers gives
    /// an empty last chunk.
    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveHeaders fields: borrowing HeaderFields, endStream: Bool)

    /// A part of a body. With `endStream` it is the last one and may be empty.
    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveData bytes: UnsafeRawBufferPointer, endStream: Bool)

    /// The stream has ended. Called exactly once per stream, as its last event.
    func http2(_ session: HTTP2Session, stream: HTTP2Stream, didEnd end: StreamEnd)

    /// SETTINGS arrived and are in effect.
    func http2(_ session: HTTP2Session, didReceiveSettings settings: PeerSettings)

    /// GOAWAY arrived. The ends of streams above its last stream follow as separate events.
    func http2(_ session: HTTP2Session, didReceiveGoAway goAway: GoAway)

    /// The peer answered a PING of this end.
    func http2(_ session: HTTP2Session, didReceivePingAck opaque: UInt64)
}
