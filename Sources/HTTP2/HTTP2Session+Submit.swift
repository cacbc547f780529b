// SPDX-License-Identifier: Apache-2.0
import CNghttp2

extension HTTP2Session {
    /// Queues a request and returns its stream.
    ///
    /// The body is kept until its last byte is sent. Submit no more than `peerSettings.maxConcurrentStreams` allows,
    /// because further requests wait inside nghttp2 without a deadline. Throws `noMoreRequests` after a GOAWAY or when
    /// stream ids are used up.
    public func submitRequest(
        _ headers: borrowing HeaderList, body: [UInt8], tag: UInt64
    ) throws(HTTP2Fault) -> Int32 {
        // nghttp2 would assign an id to the request and drop it later.
        guard acceptsRequests else { throw HTTP2Fault(.noMoreRequests, detail: "the connection is being closed") }
        let slot = recorder.pointee.streams.insert(id: 0, tag: tag, body: body)
        let session = raw
        let id = headers.withFields { fields, count -> Int32 in
            var provider = Self.provider(slot)
            // Without a provider HEADERS carries END_STREAM.
            return withUnsafePointer(to: &provider) {
                nghttp2_submit_request(
                    session, nil, fields, count, body.isEmpty ? nil : $0, SlotPointer.make(slot))
            }
        }
        guard id > 0 else {
            recorder.pointee.streams.remove(slot)
            throw .submit(id)
        }
        recorder.pointee.streams[slot].id = id
        return id
    }

    /// Queues the answer to a request. With an empty `body`, only headers are sent.
    ///
    /// `pieceBytes` limits the size of DATA frames, for a server that imitates a difficult one.
    ///
    /// Throws `noSuchStream` if the client has left the stream.
    public func submitResponse(
        _ stream: Int32, _ headers: borrowing HeaderList, body: [UInt8] = [], pieceBytes: Int? = nil
    ) throws(HTTP2Fault) {
        let slot = SlotPointer.index(nghttp2_session_get_stream_user_data(raw, stream))
        guard recorder.pointee.streams.holds(slot, id: stream), !recorder.pointee.streams[slot].hasEnded else {
            throw HTTP2Fault(.noSuchStream)
        }
        recorder.pointee.streams[slot].body = body
        if let pieceBytes, !body.isEmpty { recorder.pointee.bodyPieces[stream] = max(1, pieceBytes) }
        let session = raw
        let result = headers.withFields { fields, count -> Int32 in
            var provider = Self.provider(slot)
            return withUnsafePointer(to: &provider) {
                nghttp2_submit_response(session, stream, fields, count, body.isEmpty ? nil : $0)
            }
        }
        guard result == 0 else { throw .submit(result) }
    }

    private static func provider(_ slot: Int) -> nghttp2_data_provider {
        var provider = nghttp2_data_provider()
        provider.source.ptr = SlotPointer.make(slot)
        provider.read_callback = SessionCallbacks.readBody
        return provider
    }

    /// Sets the owner's value of an open stream. Later events of the stream carry it.
    public func setTag(_ tag: UInt64, stream: Int32) {
        let slot = SlotPointer.index(nghttp2_session_get_stream_user_data(raw, stream))
        guard recorder.pointee.streams.holds(slot, id: stream) else { return }
        recorder.pointee.streams[slot].tag = tag
    }

    /// Queues RST_STREAM. The stream's end is reported when the frame is sent. An unknown stream is ignored.
    public func resetStream(_ stream: Int32, _ code: HTTP2ErrorCode) {
        nghttp2_submit_rst_stream(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, code.rawValue)
    }

    /// Queues a PING. Its answer returns `opaque`.
    public func submitPing(_ opaque: UInt64) throws(HTTP2Fault) {
        let result = withUnsafeBytes(of: opaque.bigEndian) {
            nghttp2_submit_ping(
                raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), $0.bindMemory(to: UInt8.self).baseAddress)
        }
        guard result == 0 else { throw .submit(result) }
    }

    /// Announces new settings. Nil fields are not sent.
    public func submitSettings(_ settings: HTTP2Settings) throws(HTTP2Fault) {
        var entries: [nghttp2_settings_entry] = []
        func add(_ id: nghttp2_settings_id, _ value: UInt32?) {
            guard let value else { return }
            entries.append(nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: value))
        }
        // Server push is never used (RFC 9113 section 8.4).
        if role == .client { add(NGHTTP2_SETTINGS_ENABLE_PUSH, 0) }
        add(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, settings.maxConcurrentStreams)
        add(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, settings.initialWindowBytes)
        add(NGHTTP2_SETTINGS_MAX_FRAME_SIZE, settings.maxFrameBytes)
        add(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, settings.headerTableBytes)
        add(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, settings.maxHeaderListBytes)
        let result = nghttp2_submit_settings(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count)
        guard result == 0 else { throw .submit(result) }
    }

    /// Queues GOAWAY. The peer's streams above `lastStreamID` are dropped unprocessed; the others continue to their
    /// end.
    public func submitGoAway(lastStreamID: Int32, _ code: HTTP2ErrorCode, debug: [UInt8] = []) throws(HTTP2Fault) {
        let result = nghttp2_submit_goaway(
            raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), lastStreamID, code.rawValue, debug, debug.count)
        guard result == 0 else { throw .submit(result) }
    }

    /// Queues GOAWAY and ends the session after it is sent: nothing more is received, and `isDone` becomes true.
    public func terminate(_ code: HTTP2ErrorCode) {
        nghttp2_session_terminate_session(raw, code.rawValue)
    }
}
