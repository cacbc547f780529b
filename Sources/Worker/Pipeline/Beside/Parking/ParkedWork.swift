// SPDX-License-Identifier: Apache-2.0
import JSON
import Kafka
import PushCore

/// A record of `carillon.parked` in memory, from its read to the settled offset: an event with its open recipients.
final class ParkedBatch {
    let partition: TopicPartition
    let place: RecordPlace
    /// Recipients that have not ended; the record is settled with the last one.
    var open = 0
    /// The number of them in progress.
    var begun = 0
    /// When it was read, or refused as it was written again, in ms of the steady clock.
    var readMs: Int64 = 0
    /// The outcomes of its recipients with their subject. They count when the record is settled.
    var counted = RecordCounts()
    /// It goes to the dead-letter topic.
    var isRejected = false
    /// It was read with several recipients.
    var hasSeveral = false
    /// Its app's share of what is held of the topic.
    var share = 1.0
    /// The part that it takes of that share.
    var size = (app: "", bytes: 0)
    /// Members of the record that a later version wrote.
    let later: [JSONTree.Member]

    init(_ origin: EventJob.Origin, later: [JSONTree.Member] = []) {
        partition = origin.partition
        place = origin.place
        self.later = later
    }
}

/// The open part of a `ParkedBatch` for one recipient, or the event with all its recipients.
final class ParkedWork {
    var record: ParkedRecord
    let batch: ParkedBatch
    /// Its number among all that this shard read from the topic.
    var number: UInt64 = 0
    /// The work's line in the wheel; nil: it is in none.
    var line: ParkedWheel.Key?
    /// All of it parks again, so that its notes stay.
    var parksAgain = false
    /// Its partition goes to another owner, which continues from the record in the topic.
    var partitionGoes = false

    var partition: TopicPartition { batch.partition }
    var place: RecordPlace { batch.place }

    init(_ record: ParkedRecord, of batch: ParkedBatch) {
        self.record = record
        self.batch = batch
    }

    /// - Returns: whether both events came through the same partition.
    func isOfPartition(of other: ParkedWork) -> Bool {
        record.source.offset >= 0 && record.source.partition == other.record.source.partition
    }

    func isBeforeInPartition(_ other: ParkedWork) -> Bool {
        (record.source.offset, number) < (other.record.source.offset, other.number)
    }

    func isBeforeInTime(_ other: ParkedWork) -> Bool {
        (record.source.kafkaMs, number) < (other.record.source.kafkaMs, other.number)
    }
}
