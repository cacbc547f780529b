// SPDX-License-Identifier: Apache-2.0
import APNsProtocol
import Glibc
import HTTP2

/// A complete request: Apple's checks, channel requests, and the scenario's rules.
extension SimulatedConnection {
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
