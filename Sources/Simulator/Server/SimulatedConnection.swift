// SPDX-License-Identifier: Apache-2.0
import EventLoop
import HTTP2

/// One client's connection. It owns its link and its session, and handles each request from headers to answer.
final class SimulatedConnection: LinkDelegate, HTTP2SessionDelegate {
    let number: Int
    let link: Link
    let session: HTTP2Session
    unowned let simulator: APNsSimulator

    var exchanges: [Exchange] = []
    private var free: [Int] = []
    let answers: AnswerWriter

    // The last provider token on this connection, because nearly every request repeats it.
    var authorization: [UInt8] = []
    var standing: TokenVerifier.Standing?
    var teamID: String?

    var streamLimit: UInt32
    var isProven: Bool
    var isShrunk = false
    var served = 0
    /// The last id of a sent GOAWAY. Streams above it are ignored, even those received in the same read.
    var lastStreamID: Int32?
    var lastAnsweredID: Int32 = 0
    var isFrozen = false
    var drip: DripOutput?
    /// The delay line of the scenario's round trip.
    private var line: OutputLine?
    var throttle = TokenThrottle()
    /// Freezes as soon as the queued output is sent.
    var isWedging = false
    private var lingering: LoopTimer?

    init(number: Int, link: Link, simulator: APNsSimulator) throws(HTTP2Fault) {
        self.number = number
        self.link = link
        self.simulator = simulator
        let terms = simulator.scenario.connection
        streamLimit = simulator.streamsAtStart
        isProven = !simulator.asksForToken
        var configuration = HTTP2Configuration()
        configuration.settings.maxConcurrentStreams = streamLimit
        // As APNs announces them (pushy #878, apns2 #117).
        configuration.settings.headerTableBytes = terms.headerTableBytes
        configuration.settings.maxFrameBytes = 16_384
        configuration.settings.maxHeaderListBytes = 8000
        configuration.connectionWindowBytes = terms.windowBytes ?? simulator.configuration.connectionWindowBytes
        configuration.returnsWindow = terms.returnsWindow
        session = try HTTP2Session(.server, configuration: configuration)
        answers = try AnswerWriter()
        link.delegate = self
        session.delegate = self
        if terms.roundTripMs > 0 {
            line = OutputLine(loop: simulator.loop, delayMs: terms.roundTripMs) { [unowned self] in self.write($0) }
        }
    }

    // MARK: Link

    func linkDidOpen(_ link: Link) {
        guard let fault = simulator.scenario.fault(ofConnection: number, atMs: simulator.sinceStartMs) else {
            return flush()
        }
        simulator.counters.faults[fault.name, default: 0] += 1
        switch fault {
        case .close: close()
        case .breakOff: breakOff(.midRecord)
        case .mute: freeze()
        case .goAway(let code, let reason): endWith(RawFrames.goAway(code: code, debug: RawFrames.debug(reason)))
        case .bytes(let bytes): endWith(bytes)
        }
    }

    /// Sends these bytes in place of everything else, then closes.
    private func endWith(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { put($0) }
        freeze()
        linger()
    }

    /// Stops reading and writing. Output that is already queued is still sent.
    func freeze() {
        isFrozen = true
        session.stop()
        link.pauseReading()
    }

    func put(_ bytes: UnsafeRawBufferPointer) {
        if let line { line.add(bytes) } else { write(bytes) }
    }

    private func write(_ bytes: UnsafeRawBufferPointer) {
        if let drip { drip.add(bytes) } else { link.write(bytes) }
    }

    func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) {
        guard !isFrozen else { return }
        do {
            try session.receive(bytes)
        } catch {
            flush()
            return close()
        }
        flush()
    }

    func linkDidDrain(_ link: Link) {
        if !isFrozen { link.resumeReading() }
        flush()
    }

    func link(_ link: Link, didClose reason: LinkFault) {
        settleRest()
        simulator.remove(self)
    }

    /// Writes the ledger's lines, then passes the answers to the link.
    func flush() {
        guard !isFrozen, link.isOpen else { return }
        simulator.ledger.flush()
        // No answer may leave without its line.
        guard simulator.ledger.fault == nil else { return close() }
        do {
            try session.drainOutput { put($0) }
        } catch {
            return close()
        }
        if isWedging { freeze() }
        if link.isFull { link.pauseReading() }
        if session.isDone { linger() }
    }

    /// Closes the connection at once.
    func close() {
        session.stop()
        link.close()
        settleRest()
        simulator.remove(self)
    }

    /// Ends the connection as a crashed host would.
    func breakOff(_ how: Link.BreakOff) {
        session.stop()
        link.breakOff(how)
        settleRest()
        simulator.remove(self)
    }

    /// After the last frame the client gets a moment to close. An immediate close could reset the connection before the
    /// client has read the frames.
    private func linger() {
        guard lingering == nil else { return }
        let timer = LoopTimer(loop: simulator.loop) { [unowned self] in self.close() }
        timer.arm(afterNanos: 500_000_000 &+ UInt64(clamping: simulator.scenario.connection.roundTripMs) &* 1_000_000)
        lingering = timer
    }

    // MARK: Session

    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveHeaders fields: borrowing HeaderFields, endStream: Bool
    ) {
        let index = free.popLast() ?? exchanges.count
        if index == exchanges.count { exchanges.append(Exchange()) }
        exchanges[index].begin(stream: stream.id)
        exchanges[index].head.add(fields)
        session.setTag(UInt64(index) + 1, stream: stream.id)
        simulator.sawStreams(session.openStreams)
        if endStream { finish(index) }
    }

    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveData bytes: UnsafeRawBufferPointer, endStream: Bool
    ) {
        guard let index = place(stream), exchanges[index].state == .receiving else { return }
        exchanges[index].take(bytes)
        if endStream { finish(index) }
    }

    func http2(_ session: HTTP2Session, stream: HTTP2Stream, didEnd end: StreamEnd) {
        guard let index = place(stream), exchanges[index].state != .free else { return }
        if exchanges[index].state == .waiting, !isDisowned(index) {
            settle(index, status: nil, reason: nil, fault: "gone")
        }
        exchanges[index].state = .free
        free.append(index)
    }

    func http2(_ session: HTTP2Session, didReceiveSettings settings: PeerSettings) {}
    func http2(_ session: HTTP2Session, didReceiveGoAway goAway: GoAway) {}
    func http2(_ session: HTTP2Session, didReceivePingAck opaque: UInt64) {}

    private func place(_ stream: HTTP2Stream) -> Int? {
        guard stream.tag > 0, stream.tag <= UInt64(exchanges.count) else { return nil }
        let index = Int(stream.tag) - 1
        return exchanges[index].stream == stream.id ? index : nil
    }

    // MARK: Connection-wide

    /// Announces the current limit if it changed.
    func updateStreamLimit() {
        let ceiling = simulator.streamsCeiling
        let limit = !isProven ? min(simulator.streamsAtStart, ceiling) : isShrunk ? 1 : ceiling
        guard limit != streamLimit else { return }
        streamLimit = limit
        var settings = HTTP2Settings()
        settings.maxConcurrentStreams = limit
        try? session.submitSettings(settings)
    }

    /// Sends GOAWAY once. APNs puts its reason into the debug bytes as JSON.
    func goAway(lastStreamID: Int32, _ code: HTTP2ErrorCode, reason: String?) {
        guard self.lastStreamID == nil else { return }
        self.lastStreamID = lastStreamID
        try? session.submitGoAway(lastStreamID: lastStreamID, code, debug: RawFrames.debug(reason))
    }

    /// - Returns: whether the request is above GOAWAY's last id. It gets neither a line nor an answer, because the
    ///   client may resend it (RFC 9113 section 6.8).
    func isDisowned(_ index: Int) -> Bool {
        guard let lastStreamID else { return false }
        return exchanges[index].stream > lastStreamID
    }
}
