// SPDX-License-Identifier: Apache-2.0
import CNghttp2

extension HTTP2Session {
    /// The peer's current settings. Before its first SETTINGS, `streamsBeforeSettings` and the RFC's defaults.
    public var peerSettings: PeerSettings {
        PeerSettings(
            maxConcurrentStreams: remote(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS),
            initialWindowBytes: remote(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE),
            maxFrameBytes: remote(NGHTTP2_SETTINGS_MAX_FRAME_SIZE),
            headerTableBytes: remote(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE),
            maxHeaderListBytes: remote(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE))
    }

    private func remote(_ id: nghttp2_settings_id) -> UInt32 {
        nghttp2_session_get_remote_settings(raw, id)
    }

    /// Streams that the peer allows at one time.
    public var peerStreamsMax: UInt32 { remote(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS) }

    /// Body bytes that may be sent on this connection before the peer returns window. Queued bodies are not subtracted.
    public var connectionSendWindow: Int { Int(nghttp2_session_get_remote_window_size(raw)) }

    /// Open or queued streams without a reported end.
    public var openStreams: Int { recorder.pointee.streams.count }

    /// Whether a client may submit more requests on this connection.
    public var acceptsRequests: Bool { nghttp2_session_check_request_allowed(raw) != 0 }

    /// Whether frames are ready to drain. A body that waits for window does not count.
    public var wantsWrite: Bool { nghttp2_session_want_write(raw) != 0 }

    /// Whether the session has ended: nothing is left to read or write. Close the connection.
    public var isDone: Bool { nghttp2_session_want_read(raw) == 0 && nghttp2_session_want_write(raw) == 0 }

    /// The peer's highest processed stream, for a graceful GOAWAY.
    public var lastProcessedStreamID: Int32 { nghttp2_session_get_last_proc_stream_id(raw) }

    /// Bytes of the peer's header fields in the HPACK table (RFC 7541 section 4.1), as its indexing fills it.
    public var headerTableBytes: Int { nghttp2_session_get_hd_inflate_dynamic_table_size(raw) }

    /// nghttp2's last message about a protocol violation, for a log line. No header values, no bodies.
    public var complaint: String? { recorder.pointee.complaint }
}
