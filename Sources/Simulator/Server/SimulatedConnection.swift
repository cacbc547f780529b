// SPDX-License-Identifier: Apache-2.0
import APNsProtocol
import EventLoop
import Glibc
import HTTP2

/// One client's connection. It owns its link and its session, and handles each request from headers to answer.
final class SimulatedConnection: LinkDelegate, HTTP2SessionDelegate {
    let number: Int
    let link: Link
    let session: HTTP2Session
    unowned let simulator: APNsSimulator

    private var exchanges: [Exchange] = []
    private var free: [Int] = []
    let answers: AnswerWriter

    // The last provider token on this connection, because nearly every request repeats it.
    var authorization: [UInt8] = []
    var standing: TokenVerifier.Standing?
    var teamID: String?

    private var streamLimit: UInt32
    var isProven: Bool
    private var isShrunk = false
    var served = 0
    /// The last id of a sent GOAWAY. Streams above it are ignored, even those received in the same read.
    var lastStreamID: Int32?
    private var lastAnsweredID: Int32 = 0
    var isFrozen = false
    var drip: DripOutput?
    /// The delay line of the scenario's round trip.
    private var line: OutputLine?
    var throttle = TokenThrottle()
    /// Freezes as soon as the queued output is sent.
    private var isWedging = false
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
    private func isDisowned(_ index: Int) -> Bool {
        guard let lastStreamID else { return false }
        return exchanges[index].stream > lastStreamID
    }

    // MARK: Answers
    // The end of a request: an answer or the scenario's fault, and its line in the ledger.

    func perform(_ action: ScenarioAction, _ index: Int) {
        let stream = exchanges[index].stream
        if let fault = action.faultName { simulator.counters.faults[fault, default: 0] += 1 }
        switch action {
        case .answer(let answer):
            guard answer.delayMs > 0 else { return send(index, answer) }
            exchanges[index].state = .waiting
            exchanges[index].answer = answer
            simulator.delay(answer.delayMs, connection: number, exchange: index, stream: stream)
        case .reset(let code):
            settle(index, status: nil, reason: nil, fault: action.faultName)
            session.resetStream(stream, code)
        case .goAway(let last, let code, let reason, let isTwice):
            if isTwice, lastStreamID == nil {
                try? session.submitGoAway(lastStreamID: .max, .noError)
            }
            let lastID: Int32 =
                switch last {
                case .none: 0
                // A later stream may have been complete earlier. Streams that were answered stay below the last id.
                case .before: max(0, stream - 2, lastAnsweredID)
                case .this: max(stream, lastAnsweredID)
                }
            goAway(lastStreamID: lastID, code, reason: reason)
            if last == .this {
                send(index, ScenarioAnswer(), fault: action.faultName)
            } else {
                settle(index, status: nil, reason: nil, fault: action.faultName)
                if lastID >= stream { session.resetStream(stream, .refusedStream) }
            }
        case .close:
            settle(index, status: nil, reason: nil, fault: action.faultName)
            simulator.ledger.flush()
            close()
        case .freezeStream:
            settle(index, status: nil, reason: nil, fault: action.faultName)
        case .freezeConnection:
            settle(index, status: nil, reason: nil, fault: action.faultName)
            simulator.ledger.flush()
            freeze()
        case .breakOff(let how):
            settle(index, status: nil, reason: nil, fault: action.faultName)
            simulator.ledger.flush()
            breakOff(how)
        case .flood(let frame, let count):
            for _ in 0..<count { submit(frame) }
            send(index, ScenarioAnswer(), fault: action.faultName)
        case .bytes(let bytes):
            // Output that is already queued goes first.
            try? session.drainOutput { put($0) }
            bytes.withUnsafeBytes { put($0) }
            send(index, ScenarioAnswer(), fault: action.faultName)
        case .drip(let bytes, let everyMs):
            if drip == nil { drip = DripOutput(link: link, loop: simulator.loop, bytes: bytes, everyMs: everyMs) }
            send(index, ScenarioAnswer(), fault: action.faultName)
        }
    }

    private func submit(_ frame: ScenarioAction.FloodFrame) {
        switch frame {
        case .ping: try? session.submitPing(0)
        case .settings:
            var settings = HTTP2Settings()
            settings.maxConcurrentStreams = streamLimit
            try? session.submitSettings(settings)
        }
    }

    /// Answers an exchange at the end of its delay.
    func answerWaiting(_ index: Int, stream: Int32) {
        guard exchanges.indices.contains(index), exchanges[index].stream == stream,
            exchanges[index].state == .waiting, !isDisowned(index), !isFrozen
        else { return }
        send(index, exchanges[index].answer)
    }

    func send(_ index: Int, _ answer: ScenarioAnswer, fault: String? = nil) {
        let stream = conclude(index, status: answer.status, reason: answer.reason, fault: fault)
        // A fault here means that the client reset the stream. Its line is already written.
        let request = AnswerWriter.Request(
            apnsID: apnsID(index), uniqueID: simulator.isDevelopment ? simulator.makeIdentifier() : nil,
            isHead: isHead(index), wallSeconds: Int(simulator.wallSeconds))
        try? answers.send(answer, to: request, on: session, stream: stream)
    }

    /// Answers a request for channels or a broadcast.
    func answer(_ reply: ChannelDirectory.Reply, _ index: Int) {
        let stream = conclude(index, status: reply.status, reason: reply.reason, fault: nil)
        // As with a push.
        try? answers.send(
            reply, requestID: simulator.makeIdentifier(), isHead: isHead(index), on: session, stream: stream)
    }

    private func isHead(_ index: Int) -> Bool {
        exchanges[index].head[.method]?.elementsEqual("HEAD".utf8) ?? false
    }

    /// Records and counts an answer. Returns its stream.
    private func conclude(_ index: Int, status: Int, reason: String?, fault: String?) -> Int32 {
        settle(index, status: status, reason: reason, fault: fault)
        count(status: status, reason: reason)
        let stream = exchanges[index].stream
        lastAnsweredID = max(lastAnsweredID, stream)
        return stream
    }

    /// Counts an answer and adjusts the stream limit.
    private func count(status: Int, reason: String?) {
        if (200...299).contains(status) {
            simulator.counters.accepted += 1
            if !isProven || isShrunk {
                isProven = true
                isShrunk = false
                updateStreamLimit()
            }
        } else {
            simulator.counters.rejected[reason ?? "", default: 0] += 1
            // "410 isn't considered an error" for the connection.
            if simulator.shrinksOnRejection, status != 410, !isShrunk {
                isShrunk = true
                updateStreamLimit()
            }
        }
    }

    /// Records an exchange. Nothing more is sent for it.
    func settle(_ index: Int, status: Int?, reason: String?, fault: String?) {
        exchanges[index].state = .settled
        guard simulator.ledger.isOn else { return }
        let record = Ledger.Record(
            connection: number, stream: exchanges[index].stream, apnsID: apnsID(index),
            fingerprint: exchanges[index].fingerprint, bytes: exchanges[index].bytes,
            isObject: exchanges[index].isObject, status: status, reason: reason, fault: fault, answered: status != nil,
            delayMs: exchanges[index].answer.delayMs)
        simulator.ledger.add(
            record, head: exchanges[index].head, body: exchanges[index].body, nowMs: simulator.loop.wallMs)
    }

    /// Records all exchanges that still waited when the connection closed.
    private func settleRest() {
        for index in exchanges.indices where exchanges[index].state == .waiting && !isDisowned(index) {
            settle(index, status: nil, reason: nil, fault: "gone")
        }
        simulator.ledger.flush()
    }

    /// The sender's identifier, or a generated one if it is missing or invalid.
    private func apnsID(_ index: Int) -> ArraySlice<UInt8> {
        if let given = exchanges[index].head[.identifier], given.count == 36 { return given }
        let made = exchanges[index].madeID ?? simulator.makeIdentifier()
        exchanges[index].madeID = made
        return made[...]
    }

    // MARK: Judging
    // A complete request: Apple's checks, channel requests, and the scenario's rules.

    func finish(_ index: Int) {
        guard !isDisowned(index) else { return exchanges[index].state = .settled }
        served += 1
        simulator.counters.requests += 1
        if let limit = simulator.scenario.goAwayAfterRequests, served >= limit {
            goAway(lastStreamID: max(exchanges[index].stream, lastAnsweredID), .noError, reason: nil)
        }
        if let place = exchanges[index].head[.path].flatMap({ ChannelDirectory.Place(path: $0) }) {
            return answerChannelRequest(place, index)
        }
        if let rejection = judge(index) {
            return send(index, ScenarioAnswer(rejection.status, rejection.reason))
        }
        guard simulator.hasRules, let action = simulator.scenario.action(for: subject(index)) else {
            let token = exchanges[index].head[.path].flatMap { RequestCheck.token(path: $0) } ?? []
            return send(
                index, RequestCheck.isNoDevice(token) ? ScenarioAnswer(400, "BadDeviceToken") : ScenarioAnswer())
        }
        perform(action, index)
    }

    /// Channels and broadcasts. Rules apply to pushes only.
    private func answerChannelRequest(_ place: ChannelDirectory.Place, _ index: Int) {
        let simulator = simulator
        exchanges[index].isObject = simulator.isObject(exchanges[index].body)
        let exchange = exchanges[index]
        if simulator.asksForToken, let rejection = judgeToken(exchange.head, index) {
            return answer(ChannelDirectory.Reply(rejection.status, rejection.reason), index)
        }
        let reply = simulator.channels.reply(
            place, head: exchange.head, body: exchange.body, bytes: exchange.bytes, isObject: exchange.isObject,
            isKnownApp: simulator.check.isKnown(bundle: place.app))
        answer(reply, index)
    }

    private func subject(_ index: Int) -> Scenario.Subject {
        let head = exchanges[index].head
        return Scenario.Subject(
            token: head[.path].flatMap { RequestCheck.token(path: $0) } ?? [], topic: head[.topic] ?? [],
            pushType: exchanges[index].type, atMs: simulator.sinceStartMs, connection: number)
    }

    /// Apple's checks in order: headers, token, payload.
    private func judge(_ index: Int) -> Rejection? {
        let simulator = simulator
        exchanges[index].isObject = simulator.isObject(exchanges[index].body)
        let head = exchanges[index].head
        if let rejection = simulator.check.head(head) { return rejection }
        if simulator.asksForToken, let rejection = judgeToken(head, index) { return rejection }
        exchanges[index].type = RequestCheck.type(head) ?? .alert
        return simulator.check.payload(
            bytes: exchanges[index].bytes, isObject: exchanges[index].isObject, type: exchanges[index].type)
    }

    private func judgeToken(_ head: RequestHead, _ index: Int) -> Rejection? {
        if let value = head[.authorization] {
            if !Self.same(value, authorization) {
                authorization = Array(value)
                standing = simulator.standing(of: value)
            }
            exchanges[index].fingerprint = standing?.fingerprint
        } else {
            authorization = []
            standing = nil
        }
        if let rejection = TokenVerifier.rejection(standing, team: teamID, now: simulator.wallSeconds) {
            return rejection
        }
        if teamID == nil { teamID = standing?.teamID }
        return throttled()
    }

    private func throttled() -> Rejection? {
        guard let rule = simulator.scenario.connection.tokenThrottle, let standing else { return nil }
        let isTooSoon =
            switch rule.scope {
            case .connection:
                throttle.changesTooSoon(standing.fingerprint, nowMs: simulator.sinceStartMs, minMs: rule.minMs)
            case .key: simulator.appearsTooSoon(standing, minMs: rule.minMs)
            }
        guard isTooSoon else { return nil }
        if rule.wedges { isWedging = true }
        return Rejection(429, "TooManyProviderTokenUpdates")
    }

    private static func same(_ left: ArraySlice<UInt8>, _ right: [UInt8]) -> Bool {
        guard left.count == right.count, !right.isEmpty else { return false }
        return left.withUnsafeBytes { one in
            right.withUnsafeBytes { two in
                guard let first = one.baseAddress, let second = two.baseAddress else { return false }
                return memcmp(first, second, two.count) == 0
            }
        }
    }
}
