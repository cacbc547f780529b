// SPDX-License-Identifier: Apache-2.0
package import JSON
package import LocalServers
package import Simulator

/// Everything that came out so far: the output topics and the simulator's ledger.
package struct Seen: Sendable {
    /// Final ones.
    package var results: [JSONTree] = []
    /// Results of what was put off, which are not final.
    package var parked: [JSONTree] = []
    package var deliveries: [JSONTree] = []
    package var feedback: [JSONTree] = []
    package var sms: [JSONTree] = []
    package var letters: [LocalCluster.Record] = []
    package var pushes: [LedgerEntry] = []

    /// By message and by event, the places of their `results`, as far as `add` has noted them.
    private var places: [String: [Int]] = [:]
    private var noted = 0

    package init() {}

    /// Appends a final result.
    package mutating func add(_ result: JSONTree) {
        for name in Set([result["msg_id"]?.string, result["event_id"]?.string]) {
            if let name { places[name, default: []].append(results.count) }
        }
        results.append(result)
        noted += 1
    }

    /// Results that name it as their message or event.
    private func results(of name: String) -> [JSONTree] {
        guard noted == results.count else {
            return results.filter { $0["msg_id"]?.string == name || $0["event_id"]?.string == name }
        }
        return (places[name] ?? []).map { results[$0] }
    }

    /// Results of a message, as `uid/device verdict reason badge`, sorted.
    package func outcomes(of message: String) -> [String] {
        results(of: message).map { result in
            let device = result["device"]?.string.map { "/" + $0 } ?? ""
            let badge = result["badge"]?.int.map { " \($0)" } ?? ""
            return "\(result["uid"]?.string ?? "?")\(device) \(result["verdict"]?.string ?? "?") "
                + (result["reason"]?.string ?? "?") + badge
        }.sorted()
    }

    package func result(of message: String) -> JSONTree? {
        results(of: message).first { $0["msg_id"]?.string == message }
    }

    /// Pushes to a token that APNs accepted.
    package func accepted(_ token: String) -> [LedgerEntry] { pushes.filter { $0.token == token && $0.status == 200 } }

    package func pushes(to token: String) -> [LedgerEntry] { pushes.filter { $0.token == token } }

    /// The push that a message's result tells of.
    package func push(of message: String) -> LedgerEntry? {
        guard let id = result(of: message)?["apns_id"]?.string else { return nil }
        return pushes.first { $0.apnsID == id }
    }

    /// By the results of these messages, the ids of the user's pushes; nil: there is no result, or it names no push.
    package func pushIDs(of messages: [String], to uid: String) -> [String?] {
        messages.map { message in
            results(of: message).first { $0["msg_id"]?.string == message && $0["uid"]?.string == uid }?["apns_id"]?
                .string
        }
    }

    package func payload(of message: String) throws -> JSONTree? {
        try push(of: message).map { try JSONTree(parsing: $0.payload) }
    }

    /// Everyone that a message was delivered to by connection.
    package func targets(of message: String) -> [JSONTree] {
        deliveries.filter { $0["event"]?["msg_id"]?.string == message }.flatMap { $0["to"]?.array ?? [] }
    }

    package func letter(with text: String) -> LocalCluster.Record? {
        letters.first { String(decoding: $0.value ?? [], as: UTF8.self).contains(text) }
    }

    /// Accepted pushes of one apns-id beyond the first.
    package var doubled: [String: Int] {
        var counts: [String: Int] = [:]
        for push in pushes where push.status == 200 { counts[push.apnsID, default: 0] += 1 }
        return counts.filter { $0.value > 1 }
    }
}

extension LedgerEntry {
    package var json: JSONTree { (try? JSONTree(parsing: payload)) ?? .null }
}
