// SPDX-License-Identifier: Apache-2.0
import Kafka
import PushCore
import Telemetry

/// Records in: each is tracked in the offset ledger, checked, and read.
extension Intake {
    func receive(_ record: borrowing KafkaRecord) {
        // Left over from before the end: the next owner reads it again.
        if isClosing { return }
        let inputClass = classes[record.partition.topic]
        if record.hasOddTime { noteOddTime(record.partition.topic) }
        let time = record.timestamp
        if let time, time.isAppendTime { shard.clockWatch.appended(ms: time.ms, nowNanos: shard.nowNanos) }
        let receipt = ledgers.with(inputClass) { ledger in
            ledger.receive(
                record.partition, offset: record.offset, bytes: record.byteCount, nowNanos: shard.nowNanos,
                timeMs: time?.ms)
        }
        if receipt == .settledBefore {
            shard.metrics.settledBefore.add()
            // It takes a place in the window behind an older record.
            relieve(record.partition)
        }
        if receipt == .otherEpoch { consumer.rewind(record.partition) }
        guard case .tracked(let slot) = receipt else { return }
        let partition = record.partition.partition
        let isCounted = shard.statistics.isCounted(
            CountedPlace(inputClass, partition), offset: record.offset, timeMs: time?.ms)
        let place = RecordPlace(
            slot, inputClass, name: RecordPlace.name(inputClass, partition, record.offset), isCounted: isCounted)
        if !inputClass.isOurs { shard.metrics.recordsConsumed.add() }
        relieve(record.partition)
        let origin = EventJob.Origin(
            partition: record.partition, place: place,
            source: EventSource(
                partition: record.partition.partition, offset: record.offset, kafkaMs: time?.ms ?? 0))
        guard let value = record.value else {
            return reject(BadRecord(.empty, "the record is null"), key: record.key, value: nil, origin)
        }
        if inputClass == .events, value.count <= EventReader.checkedBytesMax {
            shard.reader.check(value, place: checked.count)
            checked.append(value, key: record.key, origin)
            if checked.count == EventReader.checkedMax { readChecked() }
            return
        }
        // In the order of the topic.
        readChecked()
        do throws(BadRecord) {
            received.append(try read(value, key: record.key, of: inputClass, origin))
        } catch {
            reject(error, key: record.key, value: value, origin)
        }
    }

    /// Reads the records that are only checked yet.
    func readChecked() {
        checked.takeAll { (place, value, key, origin) in
            do throws(BadRecord) {
                let event = try shard.reader.read(
                    value, place: place, of: .events, latestMs: shard.latestMs(origin.source))
                received.append(keep(event, value, key: key, origin))
            } catch {
                reject(error, key: key, value: value, origin)
            }
        }
    }

    private func keep(
        _ event: Event, _ value: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer?, _ origin: EventJob.Origin
    ) -> ReceivedRecord {
        if event.hasUnusualKey(key) { shard.metrics.unusualKey(.events) }
        if shard.reader.hadUnknownFields { shard.metrics.unknownFields(.events, app: event.app) }
        // The brokers may refuse to let a scheduled message wait.
        let kept = event.sentMs > shard.nowMs ? key.map { Array($0) } : nil
        return ReceivedRecord(content: .event(event, raw: Array(value)), origin: origin, key: kept)
    }

    private func read(
        _ value: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer?, of inputClass: InputClass,
        _ origin: EventJob.Origin
    ) throws(BadRecord) -> ReceivedRecord {
        switch inputClass {
        case .events:
            return keep(try shard.read(event: value, origin.source), value, key: key, origin)
        case .userState:
            let event = try shard.reader.read(value, of: .userState, latestMs: shard.latestMs(origin.source))
            if event.hasUnusualKey(key) { shard.metrics.unusualKey(inputClass) }
            if shard.reader.hadUnknownFields { shard.metrics.unknownFields(inputClass, app: event.app) }
            guard event.mayBeRefused else { return ReceivedRecord(content: .event(event, raw: []), origin: origin) }
            return ReceivedRecord(
                content: .event(event, raw: Array(value)), origin: origin, key: key.map { Array($0) })
        case .chunks:
            guard let chunk = ChunkRecord(value) else {
                throw BadRecord(.unknownKind, "not a group chunk of this version")
            }
            let event = try shard.read(event: chunk.raw, chunk.source)
            return ReceivedRecord(content: .chunk(chunk, event), origin: origin)
        case .parked:
            switch Deferred.read(value, uids: { [shard] in shard.givenUIDs($0, $1) }) {
            case .work(let work): return ReceivedRecord(content: .parked(work), origin: origin)
            case .marks(let marks): return ReceivedRecord(content: .owed(marks.claims), origin: origin)
            case .unknown: return ReceivedRecord(content: .unknown, origin: origin)
            case .other: break
            }
            if let earlier = ParkedRecord(earlier: value, conversation: { [shard] in shard.parkedConversation($0, $1) })
            {
                return ReceivedRecord(content: .parked(Deferred([earlier])), origin: origin)
            }
            guard let owed = EarlierOwedClaim.read(value) else {
                throw BadRecord(.unknownKind, "not a parked record of this version")
            }
            return ReceivedRecord(content: .owed([owed]), origin: origin)
        }
    }

    func topic(of partition: TopicPartition) -> String { consumer.topics[partition.topic] }

    private func reject(
        _ why: BadRecord, key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, _ origin: EventJob.Origin
    ) {
        rejected.append(
            RejectedRecord(
                why: why, origin: origin, topic: topic(of: origin.partition), offset: origin.source.offset,
                key: key.map { Array($0) }, value: value.map { Array($0) }))
    }
}

/// A record that was read.
struct ReceivedRecord {
    enum Content {
        /// With the record's bytes; empty for a change of a user's state that no stored value makes wrong.
        case event(Event, raw: [UInt8])
        /// Of one event.
        case owed([OwedClaim])
        case parked(Deferred)
        /// Deferred work of a later version: it stays in the topic for a worker that knows it.
        case unknown
        case chunk(ChunkRecord, Event)
    }

    let content: Content
    let origin: EventJob.Origin
    /// The record's key, if the record may be refused later.
    var key: [UInt8]?
}

extension Event {
    /// The stored settings decide whether the record is bad: the dead-letter topic then needs its key and bytes.
    fileprivate var mayBeRefused: Bool {
        guard case .userState(let state) = body, case .settings(let change) = state.change else { return false }
        return change.touchesWindow
    }
}

/// A bad record for the dead-letter topic.
struct RejectedRecord {
    let why: BadRecord
    let origin: EventJob.Origin
    let topic: String
    let offset: Int64
    let key: [UInt8]?
    let value: [UInt8]?
}
