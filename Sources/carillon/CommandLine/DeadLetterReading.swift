// SPDX-License-Identifier: Apache-2.0
import Console
import Digits
import JSON
import Kafka
import PushCore
import Recording
import Worker

/// A record of the dead-letter topic, with the verdict of the present worker.
struct DeadLetterItem {
    /// Its position in the dead-letter topic.
    var partition: Int32
    var offset: Int64
    /// The time of the dead letter, Unix ms; nil if the broker keeps no time.
    var atMs: Int64?
    var note: DeadLetterNote
    /// The app of the refused record; nil if it cannot be read.
    var app: String?
    var key: [UInt8]?
    var value: [UInt8]?
    /// All headers, in order.
    var headers: [RecordLine.Header]
    /// The verdict in its original topic.
    var judgement: Judgement

    enum Judgement {
        case accepted
        case bad(BadRecord)
        /// This command cannot read records of that topic.
        case unknown
    }

    var isAccepted: Bool { if case .accepted = judgement { true } else { false } }
}

extension DeadLetterItem.Judgement {
    /// The rule by which the record would be refused again; nil if it would be accepted, or if that is unknown.
    var rule: String? { if case .bad(let bad) = self { bad.rule.rawValue } else { nil } }
}

/// Reads the dead-letter topic without a consumer group, and selects records.
struct DeadLetterReading {
    /// The selection of the command line.
    struct Selection {
        var choice = DeadLetterChoice()
        var start = KafkaTopicReader.Start.earliest
        var end = KafkaMergedReader.End.present
        /// A single record; nil for all that match the choice.
        var place: Place?
        /// Maximum number of records, oldest first.
        var limit = Int.max

        struct Place: Equatable {
            var partition: Int32
            var offset: Int64
        }
    }

    let selection: Selection
    private let configuration: Configuration
    private let events: EventReader
    private let parser = JSONParser(maxBytes: RecordLine.bytesMax)
    /// The contract's limit of an app's id, in bytes.
    private static let appBytesMax = 64

    init(_ selection: Selection, _ configuration: Configuration) {
        self.selection = selection
        self.configuration = configuration
        events = EventReader(apps: configuration.apps.map(\.policy.id))
    }

    var topic: String { configuration.kafka.topics.deadLetter }

    /// Passes each selected dead letter to `visit`, in order of time.
    func read(stop: StopFlag, _ visit: (DeadLetterItem) throws -> Void) throws -> KafkaTopicReader.Outcome {
        let reader = try KafkaMergedReader(
            configuration.kafka.client(id: "carillon-dlq"), topics: [topic], from: selection.start,
            until: selection.end)
        var left = selection.limit
        return try reader.read(isStopped: { stop.isSet }) { _, record in
            guard left > 0 else { return .stop }
            if let place = selection.place {
                let own = Selection.Place(partition: record.partition.partition, offset: record.offset)
                guard place == own else { return .goOn }
            }
            let item = item(record)
            guard selection.choice.takes(item.note, app: item.app, rule: item.judgement.rule) else { return .goOn }
            try visit(item)
            left -= 1
            return left > 0 ? .goOn : .stop
        }
    }

    private func item(_ record: borrowing KafkaRecord) -> DeadLetterItem {
        let headers = record.recordingHeaders
        let note = DeadLetterNote(headers)
        let value = record.value.map { Array($0) }
        var judgement = judge(value, of: note.topic)
        // The stored settings decide about this rule, and this command does not know them: the worker's word stands.
        if case .accepted = judgement, note.cause.isSame(as: BadRecord.missingWindow.why) {
            judgement = .bad(.missingWindow)
        }
        return DeadLetterItem(
            partition: record.partition.partition, offset: record.offset, atMs: record.timestampMs, note: note,
            app: app(value), key: record.key.map { Array($0) }, value: value, headers: headers,
            judgement: judgement)
    }

    private func app(_ value: [UInt8]?) -> String? {
        let parsed = parser.parse(value ?? []) { (root) throws(Never) -> String? in
            guard let app = root["app"]?.utf8, app.count <= Self.appBytesMax else { return nil }
            return String(decoding: app, as: UTF8.self)
        }
        if case .read(let app) = parsed { return app }
        return nil
    }

    /// The present worker's verdict on a record of that topic.
    func judge(_ value: [UInt8]?, of topic: String?) -> DeadLetterItem.Judgement {
        let topics = configuration.kafka.topics
        guard let topic else { return .unknown }
        let isEvent = topic.isSame(as: topics.events)
        guard isEvent || topic.isSame(as: topics.userState) else { return .unknown }
        do throws(BadRecord) {
            _ = try events.read(value ?? [], of: isEvent ? .events : .userState)
            return .accepted
        } catch {
            return .bad(error)
        }
    }
}
