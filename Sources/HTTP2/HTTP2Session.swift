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
}
