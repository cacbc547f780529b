import EventLoop
import Glibc
import HTTP2

/// One client's connection: owns its link and its session, and sees each request from headers to answer.
final class SimulatedConnection: LinkDelegate, HTTP2SessionDelegate {
    let number: Int
    let link: Link
    let session: HTTP2Session
    unowned let simulator: APNsSimulator

    var exchanges: [Exchange] = []
    private var free: [Int] = []
    private let answers: AnswerWriter

    // The last token seen here: nearly every request carries the same.
    private var authorization: [UInt8] = []
    private var standing: TokenVerifier.Standing?
    private var teamID: String?

    private var streamLimit: UInt32
    private var isProven: Bool
    private var isShrunk = false
    private var served = 0
    /// What GOAWAY announced. Streams above it count as never seen, even those that came in the same read.
    private var lastStreamID: Int32?
    private var lastAnsweredID: Int32 = 0
    private var isFrozen = false
    private var drip: DripOutput?
    /// Between this machine and the far one that the scenario makes of it.
    private var line: OutputLine?
    private var throttle = TokenThrottle()
    /// To be frozen as soon as what is queued has left.
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

    /// Says this in place of everything, and ends.
    private func endWith(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { put($0) }
        freeze()
        linger()
    }

    /// Reads and writes nothing more; what is queued for the network still goes.
    private func freeze() {
        isFrozen = true
        session.stop()
        link.pauseReading()
    }

    private func put(_ bytes: UnsafeRawBufferPointer) {
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

    /// Puts the ledger's lines down, then hands the answers to the link.
    func flush() {
        guard !isFrozen, link.isOpen else { return }
        simulator.ledger.flush()
        // Without its line no answer may leave.
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

    /// Ends the connection at once.
    func close() {
        session.stop()
        link.close()
        settleRest()
        simulator.remove(self)
    }

    /// Ends the connection as a dying host would.
    private func breakOff(_ how: Link.BreakOff) {
        session.stop()
        link.breakOff(how)
        settleRest()
        simulator.remove(self)
    }

    /// After the last frame the client gets a moment to close by itself: closing at once could reset the connection
    /// under frames that it has not read yet.
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

    // MARK: A whole request

    private func finish(_ index: Int) {
        guard !isDisowned(index) else { return exchanges[index].state = .settled }
        served += 1
        simulator.counters.requests += 1
        if let limit = simulator.scenario.goAwayAfterRequests, served >= limit {
            goAway(lastStreamID: max(exchanges[index].stream, lastAnsweredID), .noError, reason: nil)
        }
        if let place = exchanges[index].head[.path].flatMap({ ChannelDesk.Place(path: $0) }) {
            return atDesk(place, index)
        }
        if let rejection = judge(index) {
            return send(index, ScenarioAnswer(rejection.status, rejection.reason))
        }
        guard simulator.hasRules, let action = simulator.scenario.action(for: subject(index)) else {
            return send(index, ScenarioAnswer())
        }
        perform(action, index)
    }

    /// Channels and broadcasts; rules are for pushes alone.
    private func atDesk(_ place: ChannelDesk.Place, _ index: Int) {
        let simulator = simulator
        exchanges[index].isObject = simulator.isObject(exchanges[index].body)
        let exchange = exchanges[index]
        if simulator.asksForToken, let rejection = judgeToken(exchange.head, index) {
            return answer(ChannelDesk.Reply(rejection.status, rejection.reason), index)
        }
        let reply = simulator.channels.reply(
            place, head: exchange.head, body: exchange.body, bytes: exchange.bytes, isObject: exchange.isObject,
            isKnownApp: simulator.check.isKnown(bundle: place.app))
        answer(reply, index)
    }

    private func answer(_ reply: ChannelDesk.Reply, _ index: Int) {
        settle(index, status: reply.status, reason: reply.reason, fault: nil)
        count(status: reply.status, reason: reply.reason)
        let stream = exchanges[index].stream
        lastAnsweredID = max(lastAnsweredID, stream)
        // As with a push: a fault means that the client left the stream.
        try? answers.send(reply, requestID: simulator.makeIdentifier(), on: session, stream: stream)
    }

    private func subject(_ index: Int) -> Scenario.Subject {
        let head = exchanges[index].head
        return Scenario.Subject(
            token: head[.path].flatMap { RequestCheck.token(path: $0) } ?? [], topic: head[.topic] ?? [],
            pushType: exchanges[index].type, atMs: simulator.sinceStartMs, connection: number)
    }

    /// Apple's checks in turn: headers, token, payload.
    private func judge(_ index: Int) -> Rejection? {
        let simulator = simulator
        exchanges[index].isObject = simulator.isObject(exchanges[index].body)
        let head = exchanges[index].head
        if let rejection = simulator.check.head(head) { return rejection }
        if simulator.asksForToken, let rejection = judgeToken(head, index) { return rejection }
        exchanges[index].type = head[.pushType].flatMap { PushType($0) } ?? .alert
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

    private func perform(_ action: ScenarioAction, _ index: Int) {
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
                // A later stream may have been whole earlier; what was answered is not disowned.
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
            // What was queued before goes before.
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

    /// Answers an exchange whose delay is over.
    func answerWaiting(_ index: Int, stream: Int32) {
        guard exchanges.indices.contains(index), exchanges[index].stream == stream,
            exchanges[index].state == .waiting, !isDisowned(index), !isFrozen
        else { return }
        send(index, exchanges[index].answer)
    }

    private func send(_ index: Int, _ answer: ScenarioAnswer, fault: String? = nil) {
        settle(index, status: answer.status, reason: answer.reason, fault: fault)
        count(status: answer.status, reason: answer.reason)
        let stream = exchanges[index].stream
        lastAnsweredID = max(lastAnsweredID, stream)
        let identifier = apnsID(index)
        // A fault here means that the client left the stream; its line stands already.
        try? answers.send(answer, apnsID: identifier, on: session, stream: stream)
    }

    /// Counts an answer and does to the stream limit what it leads to.
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

    /// Writes an exchange down; from here on nothing more is said about it.
    private func settle(_ index: Int, status: Int?, reason: String?, fault: String?) {
        exchanges[index].state = .settled
        guard simulator.ledger.isOn else { return }
        let record = Ledger.Record(
            connection: number, stream: exchanges[index].stream, apnsID: apnsID(index),
            fingerprint: exchanges[index].fingerprint, bytes: exchanges[index].bytes,
            isObject: exchanges[index].isObject, status: status, reason: reason, fault: fault, answered: status != nil)
        simulator.ledger.add(record, head: exchanges[index].head, body: exchanges[index].body)
    }

    /// Writes down what still waited when the connection went.
    private func settleRest() {
        for index in exchanges.indices where exchanges[index].state == .waiting && !isDisowned(index) {
            settle(index, status: nil, reason: nil, fault: "gone")
        }
        simulator.ledger.flush()
    }

    /// The sender's identifier, or the one that APNs makes up where it is missing or unusable.
    private func apnsID(_ index: Int) -> ArraySlice<UInt8> {
        if let given = exchanges[index].head[.identifier], given.count == 36 { return given }
        let made = exchanges[index].madeID ?? simulator.makeIdentifier()
        exchanges[index].madeID = made
        return made[...]
    }

    // MARK: Connection-wide

    /// Announces the limit that now holds, where it changed.
    func updateStreamLimit() {
        let ceiling = simulator.streamsCeiling
        let limit = !isProven ? min(simulator.streamsAtStart, ceiling) : isShrunk ? 1 : ceiling
        guard limit != streamLimit else { return }
        streamLimit = limit
        var settings = HTTP2Settings()
        settings.maxConcurrentStreams = limit
        try? session.submitSettings(settings)
    }

    /// Sends GOAWAY once; APNs puts its reason into the debug bytes as JSON.
    func goAway(lastStreamID: Int32, _ code: HTTP2ErrorCode, reason: String?) {
        guard self.lastStreamID == nil else { return }
        self.lastStreamID = lastStreamID
        try? session.submitGoAway(lastStreamID: lastStreamID, code, debug: RawFrames.debug(reason))
    }
    /// Whether the request is above what GOAWAY announced: neither a line nor an answer, for the client sends it again
    /// by right (RFC 9113 section 6.8).
    private func isDisowned(_ index: Int) -> Bool {
        guard let lastStreamID else { return false }
        return exchanges[index].stream > lastStreamID
    }
}
