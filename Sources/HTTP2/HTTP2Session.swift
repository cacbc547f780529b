// SPDX-License-Identifier: Apache-2.0
import CNghttp2

/// One HTTP/2 connection in memory: bytes in, events out, bytes out. It has no socket and no clock.
///
/// Client or server. Owned by one thread and not Sendable. After any call that may queue frames (a submit call, or
/// `receive`, which answers PING and SETTINGS and returns windows) the owner calls `drainOutput` and sends the result.
/// Received body bytes are acknowledged at once; an owner that wants fewer resets the stream.
public final class HTTP2Session {
    /// Receives the events. Not retained; it must be alive in every call of this object, so it is usually the owner.
    /// Set it before the first `receive`. (A weak reference would slow down every retain of the delegate.)
    public unowned var delegate: (any HTTP2SessionDelegate)?
    /// The role of this end.
    public let role: HTTP2Role

    let raw: OpaquePointer
    /// Shared with nghttp2's callbacks, which run only inside calls of this object.
    let recorder: UnsafeMutablePointer<SessionRecorder>
    private var spare = SessionRecorder.Batch()
    private var isDispatching = false
    private var isStopped = false
    private var isAbandoned = false

    /// Input is processed in pieces of this size, which limits the cost of one read from a hostile peer.
    private static let inputSliceBytes = 16_384

    /// Creates a session with its first SETTINGS (and, for a client, the preface) already queued.
    public init(_ role: HTTP2Role, configuration: HTTP2Configuration = HTTP2Configuration()) throws(HTTP2Fault) {
        let recorder = UnsafeMutablePointer<SessionRecorder>.allocate(capacity: 1)
        recorder.initialize(to: SessionRecorder(role: role, configuration: configuration))
        guard let raw = Self.make(role, configuration, recorder) else {
            recorder.deinitialize(count: 1)
            recorder.deallocate()
            throw HTTP2Fault(.library, detail: "no memory for an HTTP/2 session")
        }
        self.role = role
        self.raw = raw
        self.recorder = recorder
        try submitSettings(configuration.settings)
        // A value below the protocol's initial one cannot be announced (RFC 9113 section 6.9.2).
        if configuration.connectionWindowBytes > 65_535 {
            let result = nghttp2_session_set_local_window_size(raw, 0, 0, configuration.connectionWindowBytes)
            guard result == 0 else { throw HTTP2Fault(.library, library: result) }
        }
    }

    deinit {
        nghttp2_session_del(raw)
        recorder.deinitialize(count: 1)
        recorder.deallocate()
    }

    private static func make(
        _ role: HTTP2Role, _ configuration: HTTP2Configuration, _ recorder: UnsafeMutablePointer<SessionRecorder>
    ) -> OpaquePointer? {
        var options: OpaquePointer?
        guard let callbacks = SessionCallbacks.make(role), nghttp2_option_new(&options) == 0 else { return nil }
        defer {
            nghttp2_session_callbacks_del(callbacks)
            nghttp2_option_del(options)
        }
        nghttp2_option_set_peer_max_concurrent_streams(options, configuration.streamsBeforeSettings)
        nghttp2_option_set_max_outbound_ack(options, configuration.acksQueuedMax)
        nghttp2_option_set_max_settings(options, configuration.settingsEntriesMax)
        nghttp2_option_set_stream_reset_rate_limit(options, configuration.resetBurst, configuration.resetsPerSecond)
        nghttp2_option_set_no_auto_window_update(options, configuration.returnsWindow ? 0 : 1)
        // Otherwise nghttp2 keeps closed streams for the priority tree, which APNs does not use.
        nghttp2_option_set_no_closed_streams(options, 1)
        var session: OpaquePointer?
        switch role {
        case .client: nghttp2_session_client_new2(&session, callbacks, recorder, options)
        case .server: nghttp2_session_server_new2(&session, callbacks, recorder, options)
        }
        return session
    }

    /// Processes all of the given bytes from the peer and reports the resulting events.
    ///
    /// Throws if the session cannot continue. Then drain once more (a GOAWAY may be queued), call `abandon` and close
    /// the connection. Ordinary protocol errors do not throw: nghttp2 queues a GOAWAY, and `isDone` becomes true.
    public func receive(_ bytes: UnsafeRawBufferPointer) throws(HTTP2Fault) {
        precondition(!isDispatching, "receive was called from inside an event")
        var rest = bytes[...]
        while !rest.isEmpty, !isStopped, !isAbandoned {
            let slice = UnsafeRawBufferPointer(rebasing: rest.prefix(Self.inputSliceBytes))
            rest = rest.dropFirst(slice.count)
            let taken = nghttp2_session_mem_recv(raw, slice.bindMemory(to: UInt8.self).baseAddress, slice.count)
            dispatch()
            guard taken >= 0 else {
                throw HTTP2Fault(.session, library: Int32(clamping: taken), detail: recorder.pointee.complaint)
            }
        }
    }

    /// Passes on all output, frame by frame. The caller combines the frames into full TLS records.
    ///
    /// - Parameters:
    ///   - limit: stops after about this many bytes; the rest remains for the next call.
    ///   - sink: receives each piece, which is valid during the call. It must take the whole piece.
    public func drainOutput(
        limit: Int = .max, _ sink: (UnsafeRawBufferPointer) -> Void
    ) throws(HTTP2Fault) {
        let raw = raw
        var total = 0
        var fault: HTTP2Fault?
        while total < limit {
            var chunk: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(raw, &chunk)
            guard count > 0, let chunk else {
                if count < 0 { fault = HTTP2Fault(.session, library: Int32(clamping: count)) }
                break
            }
            total += count
            sink(UnsafeRawBufferPointer(start: chunk, count: count))
        }
        dispatch()
        if let fault { throw fault }
    }

    /// Ends every open stream after the connection ended. No events follow.
    ///
    /// A request that never left to its last byte ends as `unprocessed(.notSent)`, one above a GOAWAY's last stream as
    /// `unprocessed(.aboveGoAway)`, every other as `lost`.
    public func abandon() {
        isAbandoned = true
        for slot in recorder.pointee.streams.slots.indices {
            let stream = recorder.pointee.streams[slot]
            guard stream.id != 0, !stream.hasEnded else { continue }
            recorder.pointee.streams[slot].hasEnded = true
            let end: StreamEnd =
                switch role {
                case .server: .lost
                case .client where stream.id > recorder.pointee.lastSentStreamID: .unprocessed(.notSent)
                case .client where stream.id > recorder.pointee.goAwayStreamID: .unprocessed(.aboveGoAway)
                case .client where !stream.body.isEmpty: .unprocessed(.notSent)
                case .client: .lost
                }
            recorder.pointee.inbox.facts.append(.ended(slot: slot, end))
        }
        dispatch()
    }

    /// Reports nothing from now on, not even recorded facts.
    public func stop() {
        isStopped = true
    }

    /// Reports the recorded facts. Facts recorded by calls of the event handlers are reported before this returns.
    private func dispatch() {
        guard !recorder.pointee.inbox.facts.isEmpty else { return }
        // Called inside an event: the loop further up the stack reports the new facts.
        guard !isDispatching else { return }
        isDispatching = true
        defer { isDispatching = false }
        while !recorder.pointee.inbox.facts.isEmpty {
            guard !isStopped, let delegate else { return recorder.pointee.inbox.clear() }
            var batch = SessionRecorder.Batch()
            swap(&batch, &spare)
            swap(&batch, &recorder.pointee.inbox)
            report(batch, to: delegate)
            batch.clear()
            swap(&batch, &spare)
        }
    }

    private func report(_ batch: borrowing SessionRecorder.Batch, to delegate: any HTTP2SessionDelegate) {
        batch.arena.withUnsafeBytes { arena in
            batch.fields.withUnsafeBufferPointer { fields in
                for fact in batch.facts {
                    guard !isStopped else { return }
                    report(fact, arena, fields, to: delegate)
                }
            }
        }
    }

    @inline(__always)
    private func report(
        _ fact: SessionRecorder.Fact, _ arena: UnsafeRawBufferPointer,
        _ fields: UnsafeBufferPointer<HeaderFields.Field>, to delegate: any HTTP2SessionDelegate
    ) {
        switch fact {
        case .headers(let slot, let range, let bytes, let status, let endStream):
            let view = HeaderFields(
                fields: UnsafeBufferPointer(rebasing: fields[range]),
                arena: UnsafeRawBufferPointer(rebasing: arena[bytes]),
                status: status)
            delegate.http2(self, stream: stream(slot), didReceiveHeaders: view, endStream: endStream)
        case .data(let slot, let range, let endStream):
            let bytes = UnsafeRawBufferPointer(rebasing: arena[range])
            delegate.http2(self, stream: stream(slot), didReceiveData: bytes, endStream: endStream)
        case .ended(let slot, let end):
            let ended = stream(slot)
            recorder.pointee.streams.remove(slot)
            delegate.http2(self, stream: ended, didEnd: end)
        case .settings:
            delegate.http2(self, didReceiveSettings: peerSettings)
        case .goAway(let lastStreamID, let code, let debug):
            let goAway = GoAway(
                lastStreamID: lastStreamID, code: HTTP2ErrorCode(rawValue: code), debug: Array(arena[debug]))
            delegate.http2(self, didReceiveGoAway: goAway)
        case .pingAck(let opaque):
            delegate.http2(self, didReceivePingAck: opaque)
        }
    }

    @inline(__always) private func stream(_ slot: Int) -> HTTP2Stream {
        // Copied field by field, because a copy of the slot would retain the body.
        HTTP2Stream(id: recorder.pointee.streams.slots[slot].id, tag: recorder.pointee.streams.slots[slot].tag)
    }

    // MARK: State

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

    // MARK: Submit

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
