// SPDX-License-Identifier: Apache-2.0
import EventLoop
import HTTP2

/// The end of a request: an answer or the scenario's fault, and its line in the ledger.
extension SimulatedConnection {
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
    func settleRest() {
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
}
