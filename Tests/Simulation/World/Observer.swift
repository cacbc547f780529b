import Kafka
import KafkaModel
import SimulatedSystem
import Simulator

/// Reads the topics and APNs' ledger while the world runs. Devices answer deliveries here.
struct Observer {
    private(set) var observed = Observed()
    private let story: Story
    private var places: [String: Int64] = [:]
    private let partitions: Int
    /// Receives each delivery.
    var didDeliver: (JudgeJSON) -> Void = { _ in }

    init(story: Story, partitions: Int) {
        self.story = story
        self.partitions = partitions
    }

    mutating func read(_ kafka: KafkaModel, _ traffic: Traffic, _ system: SimulatedSystem) {
        for topic in ["push.results", "push.state-results", "im.deliveries", "push.dead-letter"] {
            for partition in 0..<partitions {
                let place = places["\(topic) \(partition)"] ?? 0
                for record in kafka.records(topic, partition) where record.offset >= place {
                    places["\(topic) \(partition)"] = record.offset + 1
                    take(record, of: topic, system.nowNanos)
                }
            }
        }
    }

    private mutating func take(_ record: ModelRecord, of topic: String, _ nanos: UInt64) {
        if topic == "push.dead-letter" {
            let why = record.headers.first { $0.name == "carillon-error" }?.value ?? []
            return observed.deadLetters.append(String(decoding: why, as: UTF8.self))
        }
        guard let json = JudgeJSON(record.value ?? []) else {
            return observed.deadLetters.append("a record of \(topic) is no JSON")
        }
        let event = json["event_id"]?.text ?? ""
        switch topic {
        case "push.state-results":
            if observed.applied[event] == nil { observed.applied[event] = nanos }
            story.tell(
                "state result: \(json["kind"]?.text ?? "") \(event) of \(json["uid"]?.text ?? ""): "
                    + "\(json["outcome"]?.text ?? "")", about: [event])
        case "push.results":
            let outcome = Observed.Outcome(
                atNanos: nanos, eventID: event, uid: json["uid"]?.text ?? "", device: json["device"]?.text ?? "",
                verdict: json["verdict"]?.text ?? "", reason: json["reason"]?.text ?? "",
                pid: json["pid"]?.text ?? "", badge: json["badge"]?.number)
            observed.outcomes.append(outcome)
            story.tell(
                "result: event \(event) of \(outcome.uid), \(outcome.text)"
                    + (outcome.badge.map { " badge \($0)" } ?? ""),
                about: [event, json["msg_id"]?.text ?? ""])
        default:
            observed.deliveries += 1
            story.tell(
                "delivery by \(json["gateway"]?.text ?? "") to "
                    + (json["to"]?.list ?? []).map {
                        "\($0["uid"]?.text ?? "") \($0["device"]?.text ?? "")\($0["ack_by_ms"] == nil ? "" : " (ack)")"
                    }.joined(separator: ", "),
                about: [json["event"]?["msg_id"]?.text ?? "", json["event"]?["event_id"]?.text ?? ""])
            didDeliver(json)
        }
    }

    mutating func read(_ requests: [LedgerEntry], _ nanos: UInt64) {
        for request in requests {
            let json = JudgeJSON(request.payload)
            let aps = json?["aps"]
            let push = Observed.Push(
                atNanos: nanos, token: request.token, pid: request.apnsID, status: request.status,
                isAnswered: request.answered, badge: aps?["badge"]?.number, messageID: json?["mid"]?.text,
                isAlert: aps?["alert"] != nil,
                app: request.headers["apns-topic"].map { String($0.dropFirst("com.example.".count)) } ?? "")
            observed.pushes.append(push)
            story.tell(
                "APNs: \(push.messageID ?? "?") to …\(push.token.suffix(4)), badge \(push.badge.map(String.init) ?? "-"): "
                    + "\(push.status.map(String.init) ?? request.fault ?? "-") \(request.reason ?? "")"
                    + (push.isAnswered ? "" : ", not answered"),
                about: [push.messageID ?? ""])
        }
    }
}
