// SPDX-License-Identifier: Apache-2.0
import CNghttp2

/// nghttp2's callbacks. Each finds the recorder, records a fact and returns. None calls nghttp2's send or receive
/// functions, and none calls outside code.
enum SessionCallbacks {
    typealias Recorder = UnsafeMutablePointer<SessionRecorder>

    @inline(__always) static func recorder(_ context: UnsafeMutableRawPointer?) -> Recorder? {
        context?.assumingMemoryBound(to: SessionRecorder.self)
    }

    /// A table of all callbacks; the caller frees it with `nghttp2_session_callbacks_del`.
    static func make(_ role: HTTP2Role) -> OpaquePointer? {
        var table: OpaquePointer?
        guard nghttp2_session_callbacks_new(&table) == 0 else { return nil }
        setHeaders(table)
        if role == .server { setPieces(table) }
        nghttp2_session_callbacks_set_on_frame_recv_callback(table) { session, frame, context in
            guard let recorder = SessionCallbacks.recorder(context), let frame else { return 0 }
            SessionCallbacks.frameReceived(recorder, session, frame)
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(table) { session, _, stream, data, count, context in
            SessionCallbacks.recorder(context)?.pointee.data(
                session, stream: stream, UnsafeBufferPointer(start: data, count: count))
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(table) { session, stream, code, context in
            SessionCallbacks.recorder(context)?.pointee.closed(session, stream: stream, code: code)
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_send_callback(table) { _, frame, context in
            guard let frame, frame.pointee.hd.type == NGHTTP2_HEADERS.rawValue,
                frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST
            else { return 0 }
            SessionCallbacks.recorder(context)?.pointee.lastSentStreamID = frame.pointee.hd.stream_id
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_not_send_callback(table) { _, frame, _, context in
            guard let frame, frame.pointee.hd.type == NGHTTP2_HEADERS.rawValue,
                frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST
            else { return 0 }
            SessionCallbacks.recorder(context)?.pointee.requestNotSent(stream: frame.pointee.hd.stream_id)
            return 0
        }
        nghttp2_session_callbacks_set_error_callback2(table) { _, _, text, count, context in
            let words = UnsafeRawBufferPointer(start: text, count: min(count, 200))
            SessionCallbacks.recorder(context)?.pointee.complaint = String(decoding: words, as: UTF8.self)
            return 0
        }
        return table
    }

    /// Without this callback a DATA frame is as large as window and frame size allow.
    private static func setPieces(_ table: OpaquePointer?) {
        nghttp2_session_callbacks_set_data_source_read_length_callback(table) {
            _, _, stream, sessionWindow, streamWindow, frameBytes, context in
            let most = min(Int(sessionWindow), Int(streamWindow), Int(frameBytes))
            return min(SessionCallbacks.recorder(context)?.pointee.bodyPieces[stream] ?? most, most)
        }
    }

    private static func setHeaders(_ table: OpaquePointer?) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(table) { session, frame, context in
            guard let frame, frame.pointee.hd.type == NGHTTP2_HEADERS.rawValue else { return 0 }
            SessionCallbacks.recorder(context)?.pointee.beginHeaders(
                session, stream: frame.pointee.hd.stream_id, category: frame.pointee.headers.cat)
            return 0
        }
        nghttp2_session_callbacks_set_on_header_callback(table) {
            _, frame, name, nameCount, value, valueCount, _, context in
            guard let frame, frame.pointee.hd.type == NGHTTP2_HEADERS.rawValue,
                let recorder = SessionCallbacks.recorder(context)
            else { return 0 }
            let step = recorder.pointee.header(
                UnsafeBufferPointer(start: name, count: nameCount), UnsafeBufferPointer(start: value, count: valueCount)
            )
            return switch step {
            case .goOn: 0
            // Resets the stream. The connection and its HPACK state continue.
            case .resetStream: NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
            case .endConnection: NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
            }
        }
    }

    private static func frameReceived(
        _ recorder: Recorder, _ session: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>
    ) {
        let header = frame.pointee.hd
        let endStream = header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        let ack = header.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0
        switch UInt32(header.type) {
        case NGHTTP2_HEADERS.rawValue:
            recorder.pointee.headersDone(session, stream: header.stream_id, endStream: endStream)
        case NGHTTP2_DATA.rawValue where endStream:
            recorder.pointee.bodyDone(session, stream: header.stream_id)
        case NGHTTP2_SETTINGS.rawValue where !ack:
            recorder.pointee.inbox.facts.append(.settings)
        case NGHTTP2_PING.rawValue where ack:
            let opaque = withUnsafeBytes(of: frame.pointee.ping.opaque_data) { $0.loadUnaligned(as: UInt64.self) }
            recorder.pointee.inbox.facts.append(.pingAck(UInt64(bigEndian: opaque)))
        case NGHTTP2_GOAWAY.rawValue:
            let goAway = frame.pointee.goaway
            recorder.pointee.goAway(
                lastStreamID: goAway.last_stream_id, code: goAway.error_code,
                debug: UnsafeBufferPointer(start: goAway.opaque_data, count: goAway.opaque_data_len))
        default:
            break
        }
    }

    /// Copies a body into a DATA frame. `source` contains the stream's index in the table.
    static let readBody: nghttp2_data_source_read_callback = { _, stream, target, length, flags, source, context in
        guard let recorder = SessionCallbacks.recorder(context), let source, let flags,
            let (count, done) = recorder.pointee.takeBody(
                slot: SlotPointer.index(source.pointee.ptr), stream: stream,
                into: UnsafeMutableRawBufferPointer(start: target, count: length))
        else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
        if done { flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        return count
    }
}
