// SPDX-License-Identifier: Apache-2.0
import Console
import JSON
import Recording
import Worker

/// A line that cannot be replayed, or a missing topic.
struct ReplayFault: Error {
    var message: String
}

/// A first reading of the file before anything is written: its size, times and sequence numbers, and reasons to refuse
/// it.
struct ReplaySurvey {
    private(set) var count = 0
    /// The newest `sent_ms`.
    private(set) var newestMs: Int64?
    /// Times of recording or sending: the first line's, and the latest.
    private(set) var firstAtMs: Int64?
    private(set) var lastAtMs: Int64?
    /// The range of `server_seq` and `up_to_seq`.
    private(set) var seqs: ClosedRange<Int64>?
    /// Each topic with the first line that goes to it.
    private(set) var topics: [String: Int] = [:]
    private static let topicsMax = 1000
    /// Kafka's limit.
    private static let topicBytesMax = 249

    init(_ source: ReplaySource, path: String, stop: StopFlag) throws {
        let reader = try LineReader(path: path)
        guard reader.isRepeatable else {
            throw ReplayFault(message: "\(path) is no file: --in needs one, because replay reads it more than once")
        }
        while !stop.isSet, let line = try reader.next() {
            count += 1
            let record = source.read(line)
            if record.isBroken {
                throw ReplayFault(
                    message:
                        "\(path): line \(reader.number) is not a record: its value, key or headers have another form")
            }
            if record.isDeadLetter, !source.hasChosenTopic {
                throw ReplayFault(
                    message: "\(path): line \(reader.number) is a dead letter; carillon dlq redrive writes dead "
                        + "letters to where they came from, or name the target with --topic "
                        + "(--topic events, or --topic dead-letter to write it back)")
            }
            guard record.topic.utf8.count <= Self.topicBytesMax else {
                throw ReplayFault(message: "\(path): line \(reader.number): its topic is not a topic name")
            }
            if topics[record.topic] == nil {
                guard topics.count < Self.topicsMax else {
                    throw ReplayFault(
                        message: "\(path): line \(reader.number): more than \(Self.topicsMax) different topics")
                }
                topics[record.topic] = reader.number
            }
            if let sentMs = record.sentMs { newestMs = max(newestMs ?? .min, sentMs) }
            if let atMs = record.atMs {
                if firstAtMs == nil { firstAtMs = atMs }
                lastAtMs = max(lastAtMs ?? .min, atMs)
            }
            for seq in record.seqs {
                seqs = min(seqs?.lowerBound ?? seq, seq)...max(seqs?.upperBound ?? seq, seq)
            }
        }
    }

    /// Time from the first record to the latest, in ms.
    var spanMs: Int64 {
        guard let firstAtMs, let lastAtMs else { return 0 }
        return max(0, lastAtMs.subtractingReportingOverflow(firstAtMs).partialValue)
    }
}
