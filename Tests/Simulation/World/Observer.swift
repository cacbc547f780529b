// SPDX-License-Identifier: Apache-2.0
import Kafka
import KafkaModel
import SimulatedSystem
import Simulator

/// Reads the topics and APNs' ledger while the world runs. Devices answer deliveries here.
struct Observer {
    var observed = Observed()
    private let story: Story
    private var places: [String: Int64] = [:]
    private let partitions: Int
    /// Receives each delivery.
    var didDeliver: (JudgeJSON) -> Void = { _ in }
    /// Receives each request to APNs.
    var didPush: (Observed.Push) -> Void = { _ in }
    private static let topics = [
        "push.results", "push.state-results", "im.deliveries", "push.dead-letter", "carillon.parked", "carillon.chunks",
        "push.sms", "push.feedback",
    ]

    init(story: Story, partitions: Int) {
        self.story = story
        self.partitions = partitions
    }

    mutating func read(_ kafka: KafkaModel, _ nanos: UInt64) {
        for topic in Self.topics {
            for partition in 0..<partitions {
                let place = places["\(topic) \(partition)"] ?? 0
                let records = kafka.records(topic, partition)
                guard let last = records.last, last.offset >= place else { continue }
                places["\(topic) \(partition)"] = last.offset + 1
                let first = records.lastIndex { $0.offset < place }.map { $0 + 1 } ?? records.startIndex
                for record in records[first...] { take(record, of: topic, nanos) }
            }
        }
    }

    /// The topics that workers read are in another cluster, with nothing new.
    mutating func didMove(_ topics: some Sequence<String>, _ kafka: KafkaModel) {
        for topic in topics {
            for partition in 0..<partitions {
                places["\(topic) \(partition)"] = kafka.range(topic, partition).upperBound
            }
        }
    }

    private mutating func take(_ record: ModelRecord, of topic: String, _ nanos: UInt64) {
        switch topic {
        case "push.dead-letter":
            let why = record.headers.first { $0.name == "carillon-error" }?.value ?? []
            let (error, value) = (
                String(decoding: why, as: UTF8.self), String(decoding: record.value ?? [], as: UTF8.self)
            )
            if value.contains("\"app\":\"\(Episode.app)\"") {
                observed.letters.append((value, error))
            } else {
                observed.deadLetters.append(error)
            }
            story.tell("dead letter: \(error)")
            return
        case "carillon.parked", "carillon.chunks":
            // The format is internal, but the event's own bytes are in it.
            guard let event = Self.eventID(in: record.value ?? []) else { return }
            let key = String(decoding: record.key ?? [], as: UTF8.self)
            let uids = ParkedMembers.uids(in: record.value ?? [])
            observed.handedOn.append(Observed.HandOn(atNanos: nanos, eventID: event, key: key, uids: uids))
            story.tell("handed on: event \(event) by \(topic), key \(key)", about: [event])
            return
        default: break
        }
        guard let json = JudgeJSON(record.value ?? []) else {
            return observed.deadLetters.append("a record of \(topic) is no JSON")
        }
        switch topic {
        case "push.state-results": takeStateResult(json, nanos)
        case "push.results": takeOutcome(json, nanos)
        case "push.sms": takeSMS(json, nanos)
        case "push.feedback": takeFeedback(json, nanos)
        default: takeDelivery(json, nanos)
        }
    }

    static func eventID(in bytes: [UInt8]) -> String? {
        let mark = Array("\"event_id\":\"".utf8)
        guard bytes.count > mark.count,
            let start = (0...(bytes.count - mark.count)).first(where: { bytes[$0...].starts(with: mark) })
        else { return nil }
        return String(
            decoding: bytes[(start + mark.count)...].prefix { $0 != UInt8(ascii: "\"") }, as: UTF8.self)
    }

    private mutating func takeStateResult(_ json: JudgeJSON, _ nanos: UInt64) {
        let (event, outcome) = (json["event_id"]?.text ?? "", json["outcome"]?.text ?? "")
        if observed.results[event] == nil {
            observed.results[event] = Observed.StateResult(
                atNanos: nanos, outcome: outcome, reason: json["reason"]?.text ?? "", kind: json["kind"]?.text,
                uid: json["uid"]?.text)
        }
        story.tell(
            "state result: \(json["kind"]?.text ?? "") \(event) of \(json["uid"]?.text ?? ""): \(outcome) "
                + (json["reason"]?.text ?? ""),
            about: [event])
    }

    private mutating func takeSMS(_ json: JudgeJSON, _ nanos: UInt64) {
        let sms = Observed.SMS(
            atNanos: nanos, app: json["app"]?.text ?? "", eventID: json["event_id"]?.text ?? "",
            uid: json["uid"]?.text ?? "", reason: json["reason"]?.text ?? "", phone: json["phone"]?.text,
            body: json["body"]?.text)
        observed.sms.append(sms)
        story.tell("SMS for \(sms.uid) of event \(sms.eventID): \(sms.reason)", about: [sms.eventID])
    }

    private mutating func takeFeedback(_ json: JudgeJSON, _ nanos: UInt64) {
        let feedback = Observed.Feedback(
            atNanos: nanos, app: json["app"]?.text ?? "", uid: json["uid"]?.text ?? "",
            device: json["device"]?.text ?? "", token: json["token"]?.text ?? "", cause: json["cause"]?.text ?? "",
            boundMs: json["bound_ms"]?.number ?? 0)
        observed.feedback.append(feedback)
        story.tell("feedback: …\(feedback.token.suffix(4)) of \(feedback.uid) is removed by \(feedback.cause)")
    }

    private mutating func takeOutcome(_ json: JudgeJSON, _ nanos: UInt64) {
        let outcome = Observed.Outcome(
            atNanos: nanos, eventID: json["event_id"]?.text ?? "", uid: json["uid"]?.text ?? "",
            device: json["device"]?.text ?? "", verdict: json["verdict"]?.text ?? "",
            reason: json["reason"]?.text ?? "", pid: json["pid"]?.text ?? "", badge: json["badge"]?.number,
            isOfBadge: (json["msg_id"]?.text ?? "").isEmpty && json["lane"] == nil, app: json["app"]?.text ?? "",
            attempts: json["attempts"]?.number, latencyMs: json["latency_ms"]?.number,
            credential: json["credential"]?.text, status: json["status"]?.number, apnsID: json["apns_id"]?.text,
            messageID: json["msg_id"]?.text)
        observed.outcomes.append(outcome)
        story.tell(
            "result: event \(outcome.eventID) of \(outcome.uid), \(outcome.text)"
                + (outcome.badge.map { " badge \($0)" } ?? ""),
            about: [outcome.eventID, json["msg_id"]?.text ?? ""])
    }

    private mutating func takeDelivery(_ json: JudgeJSON, _ nanos: UInt64) {
        let event = json["event"]
        let (eventID, app) = (event?["event_id"]?.text ?? "", json["app"]?.text ?? "")
        for target in json["to"]?.list ?? [] {
            observed.deliveries.append(
                Observed.Delivery(
                    atNanos: nanos, app: app, eventID: eventID, uid: target["uid"]?.text ?? "",
                    device: target["device"]?.text ?? "", alerts: target["alert"]?.flag ?? false,
                    isPushed: target["pushed"]?.flag ?? false, wantsAck: target["ack_by_ms"] != nil,
                    ackByMs: target["ack_by_ms"]?.number, gateway: json["gateway"]?.text ?? "",
                    connection: target["conn_epoch"]?.number ?? -1, pid: target["pid"]?.text,
                    event: event))
        }
        story.tell(
            "delivery by \(json["gateway"]?.text ?? "") to "
                + (json["to"]?.list ?? []).map {
                    "\($0["uid"]?.text ?? "") \($0["device"]?.text ?? "")\($0["ack_by_ms"] == nil ? "" : " (ack)")"
                        + ($0["alert"]?.flag == true ? " (alert)" : "")
                }.joined(separator: ", "),
            about: [event?["msg_id"]?.text ?? "", eventID])
        didDeliver(json)
    }

    mutating func read(_ requests: [LedgerEntry], _ nanos: UInt64) {
        for request in requests {
            let push = Self.push(request, nanos)
            observed.pushes.append(push)
            didPush(push)
            story.tell(
                "APNs: \(push.messageID ?? "?") to …\(push.token.suffix(4)), badge \(push.badge.map(String.init) ?? "-"): "
                    + "\(push.status.map(String.init) ?? request.fault ?? "-") \(request.reason ?? "")"
                    + (push.isAnswered ? "" : ", not answered"),
                about: [push.messageID ?? ""])
        }
    }

    private static func push(_ request: LedgerEntry, _ nanos: UInt64) -> Observed.Push {
        let json = JudgeJSON(request.payload)
        let aps = json?["aps"]
        let topic = request.headers["apns-topic"] ?? ""
        let bundle = String(topic.dropFirst("com.example.".count))
        let alert = aps?["alert"]
        var push = Observed.Push(
            atNanos: nanos, token: request.token, pid: request.apnsID, status: request.status,
            isAnswered: request.answered, app: bundle.prefix { $0 != "." }.description)
        push.messageID =
            json?["mid"]?.text ?? json?["rc"]?["id"]?.text ?? json?["message"]?["params"]?["msg_id"]?.text
            ?? aps?["content-state"]?["event"]?.text
        push.topic = topic
        push.collapseID = request.headers["apns-collapse-id"] ?? ""
        push.bytes = request.bytes
        push.delayMs = request.delayMs
        push.channel = request.headers["apns-channel-id"]
        // A broadcast has no topic. Only episodes have channels.
        if push.channel != nil { push.app = Episode.app }
        push.payload = json
        push.reason = request.reason ?? ""
        push.type = request.headers["apns-push-type"] ?? ""
        push.priority = request.headers["apns-priority"].flatMap { Int64($0) }
        push.expiration = request.headers["apns-expiration"].flatMap { Int64($0) }
        push.badge = aps?["badge"]?.number
        push.title = alert?["title"]?.text
        push.body = alert?.text ?? alert?["body"]?.text
        push.isMutable = aps?["mutable-content"] != nil
        if case .object(let members)? = aps { push.names = members.keys.sorted() }
        return push
    }
}

extension Observer {
    private static let verdicts = ["a": "accepted", "r": "rejected", "e": "expired", "x": "suppressed", "o": "online"]

    /// Reads the statistics of these hours since 1970, as `docs/contract/statistics.md` names the numbers.
    mutating func readStatistics(apps: [String], hours: ClosedRange<Int64>, _ command: ([String]) -> [UInt8]) {
        var counted: [String: Int64] = [:]
        readNumbers(apps, hours, command)
        for app in apps {
            for hour in hours {
                let words = Self.words(command(["HGETALL", "c:t:{n}h\(hour):\(app)"]))
                for index in stride(from: 0, to: words.count - 1, by: 2) {
                    let parts = words[index].split(separator: ":", omittingEmptySubsequences: false)
                    let isBadge = parts.first == "pbadge"
                    let letter =
                        isBadge
                        ? parts.last.map(String.init)
                        : words[index].first == "." ? String(words[index].dropFirst()) : nil
                    guard let letter, let verdict = Self.verdicts[letter], let count = Int64(words[index + 1]) else {
                        continue
                    }
                    counted["\(app) \(verdict)", default: 0] += isBadge ? -count : count
                }
            }
        }
        observed.counted = counted
    }

    /// The lists of the statistics: by app, list, name and letter.
    private mutating func readNumbers(_ apps: [String], _ hours: ClosedRange<Int64>, _ command: ([String]) -> [UInt8]) {
        for app in apps {
            var names: [String: String] = [:]
            for day in Set([hours.lowerBound / 24, hours.upperBound / 24]) {
                let words = Self.words(command(["HGETALL", "c:t:{n}n\(day):\(app)"]))
                for index in stride(from: 0, to: words.count - 1, by: 2) { names[words[index]] = words[index + 1] }
                addTasks(app, Self.words(command(["HGETALL", "c:t:{n}t\(day):\(app)"])))
            }
            for hour in hours {
                let words = Self.words(command(["HGETALL", "c:t:{n}h\(hour):\(app)"]))
                for index in stride(from: 0, to: words.count - 1, by: 2) {
                    guard let count = Int64(words[index + 1]), let first = words[index].first else { continue }
                    let rest = words[index].dropFirst()
                    let parts = rest.split(separator: ":", maxSplits: 1).map(String.init)
                    switch first {
                    case ".": observed.numbers["\(app) all - \(rest)", default: 0] += count
                    case "r" where parts.count == 2:
                        observed.numbers["\(app) reason \(parts[0]) \(parts[1])", default: 0] += count
                    case "p" where parts.count == 2:
                        observed.numbers["\(app) type \(parts[0]) \(parts[1])", default: 0] += count
                    case "n" where parts.count == 2:
                        observed.numbers["\(app) name \(names[parts[0]] ?? parts[0]) \(parts[1])", default: 0] += count
                    default: break
                    }
                }
            }
        }
    }

    private mutating func addTasks(_ app: String, _ words: [String]) {
        var fields: [String: String] = [:]
        for index in stride(from: 0, to: words.count - 1, by: 2) { fields[words[index]] = words[index + 1] }
        for (field, value) in fields {
            let parts = field.split(separator: ":").map(String.init)
            guard parts.count == 2, parts[1] != "t", let count = Int64(value) else { continue }
            observed.numbers["\(app) task \(fields["\(parts[0]):t"] ?? "") \(parts[1])", default: 0] += count
        }
    }

    /// The bulk strings of an array.
    private static func words(_ reply: [UInt8]) -> [String] {
        var words: [String] = []
        var lines = reply.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).makeIterator()
        while let line = lines.next() {
            guard line.first == UInt8(ascii: "$"), let text = lines.next() else { continue }
            words.append(String(decoding: text.dropLast(), as: UTF8.self))
        }
        return words
    }
}
