// SPDX-License-Identifier: Apache-2.0
import HTTP2

/// A session hears whatever a server says: every request ends once, in the order headers, body, end.
enum SessionFuzz {
    static func run(_ bytes: UnsafeRawBufferPointer) -> [String] {
        var script = Script(bytes)
        let watcher = StreamWatcher()
        do {
            let session = try HTTP2Session(.client)
            session.delegate = watcher
            try play(&script, session, watcher)
            try? session.drainOutput { _ in }
            session.abandon()
            if session.openStreams != 0 { watcher.complaints.append("\(session.openStreams) streams left") }
        } catch {
            watcher.complaints.append("\(error)")
        }
        watcher.complaints += watcher.states.filter { $0.value != .ended }.map { "request \($0.key): \($0.value)" }
        return watcher.complaints
    }

    private static func play(_ script: inout Script, _ session: HTTP2Session, _ watcher: StreamWatcher) throws {
        var pending = script.byte() & 1 == 0 ? ServerFrames.preface : []
        let piece = Int(script.byte())
        while !script.isOver {
            switch script.number(below: 16) {
            case 0: submit(&script, session, watcher)
            case 1: if let open = watcher.open.first { session.resetStream(open, .cancel) }
            case 2: try? session.submitPing(UInt64(script.byte()))
            case 3: try? session.drainOutput(limit: script.number(below: 64) + 1) { _ in }
            case 4:
                // What the network gathered arrives.
                guard deliver(&pending, piece, session) else { return }
            default: pending += ServerFrames.next(&script, streams: watcher.open)
            }
            if pending.count > 1 << 18 { break }
        }
        _ = deliver(&pending, piece, session)
    }

    private static func submit(_ script: inout Script, _ session: HTTP2Session, _ watcher: StreamWatcher) {
        guard watcher.states.count < 64 else { return }
        var headers = HeaderList()
        _ = try? headers.append(":method", "POST")
        _ = try? headers.append(":scheme", "https")
        _ = try? headers.append(":authority", "localhost")
        _ = try? headers.append(":path", "/3/device/ab")
        let tag = UInt64(watcher.states.count + 1)
        let body = [UInt8](repeating: 0x20, count: Int(script.byte()) * 64)
        guard let id = try? session.submitRequest(headers, body: body, tag: tag) else { return }
        watcher.states[tag] = .silent
        watcher.open.append(id)
        try? session.drainOutput { _ in }
    }

    /// In pieces of so many bytes, 0 at once; false where the session is over.
    private static func deliver(_ bytes: inout [UInt8], _ piece: Int, _ session: HTTP2Session) -> Bool {
        var rest = bytes[...]
        bytes = []
        while !rest.isEmpty {
            let part = Array(rest.prefix(piece == 0 ? rest.count : piece))
            rest = rest.dropFirst(part.count)
            guard (try? part.withUnsafeBytes { try session.receive($0) }) != nil else { return false }
            try? session.drainOutput { _ in }
            if session.isDone { return false }
        }
        return true
    }
}

/// Checks the order of each request's events.
private final class StreamWatcher: HTTP2SessionDelegate {
    enum State { case silent, answered, whole, ended }

    var states: [UInt64: State] = [:]
    var open: [Int32] = []
    var complaints: [String] = []

    private func move(_ stream: HTTP2Stream, from: [State], to state: State) {
        guard let old = states[stream.tag], from.contains(old) else {
            return complaints.append("request \(stream.tag) went to \(state) from \(states[stream.tag] as Any)")
        }
        states[stream.tag] = state
    }

    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveHeaders fields: borrowing HeaderFields, endStream: Bool
    ) {
        for index in 0..<fields.count where fields.name(index).isEmpty { complaints.append("a field without a name") }
        if !(200...999).contains(fields.status) { complaints.append("an answer with status \(fields.status)") }
        move(stream, from: [.silent], to: endStream ? .whole : .answered)
    }

    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveData bytes: UnsafeRawBufferPointer, endStream: Bool
    ) {
        move(stream, from: [.answered], to: endStream ? .whole : .answered)
    }

    func http2(_ session: HTTP2Session, stream: HTTP2Stream, didEnd end: StreamEnd) {
        move(stream, from: [.silent, .answered, .whole], to: .ended)
        open.removeAll { $0 == stream.id }
    }

    func http2(_ session: HTTP2Session, didReceiveSettings settings: PeerSettings) {}
    func http2(_ session: HTTP2Session, didReceiveGoAway goAway: GoAway) {
        if goAway.debug.count > 1024 { complaints.append("long last words") }
    }
    func http2(_ session: HTTP2Session, didReceivePingAck opaque: UInt64) {}
}
