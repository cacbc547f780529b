// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Kafka

/// What is known of offsets and times of records, without a broker.
@Suite struct RecordTimeTests {
    @Test(
        arguments: [
            (nil, false), (0, true), (1, true), (1_700_000_000, true), (99_999_999_999, true), (100_000_000_000, false),
            (1_700_000_000_000, false),
        ] as [(Int64?, Bool)])
    func `a Kafka time that is not in milliseconds counts as absent`(ms: Int64?, isOdd: Bool) {
        let record = KafkaRecord(
            partition: TopicPartition(topic: 0, partition: 0), offset: 0,
            timestamp: ms.map { (ms: $0, isAppendTime: false) }, key: nil, value: nil)
        #expect(record.hasOddTime == isOdd)
        #expect(record.timestampMs == (isOdd ? nil : ms))
        #expect(record.timestamp?.ms == record.timestampMs)
    }

    // MARK: Offsets that were passed

    private static let one = TopicPartition(topic: 0, partition: 0)

    private static func table(committed: Int64?) -> ReadingTable {
        var table = ReadingTable(topicCount: 1)
        table.assign(one)
        table.noteCommitted(one, committed)
        return table
    }

    @Test func `markers between records and at the end are no lost records`() {
        var table = Self.table(committed: 0)
        for offset in [0, 2, 4] as [Int64] { _ = table.move(Self.one, at: offset, to: offset + 1) }
        _ = table.move(Self.one, at: 6, to: 6)
        table.noteQuestion([Self.one])
        table.noteStart(Self.one, 0)
        #expect(table.lost == 0)
        // Retention comes later, to what was read.
        table.noteQuestion([Self.one])
        table.noteStart(Self.one, 6)
        #expect(table.lost == 0)
    }

    @Test func `offsets that were passed below the log's beginning are lost records`() {
        var table = Self.table(committed: 10)
        _ = table.move(Self.one, at: 17, to: 18)
        _ = table.move(Self.one, at: 19, to: 20)
        #expect(table.lost == 0, "nobody has asked for the beginning since")
        table.noteStart(Self.one, 17)
        #expect(table.lost == 0, "an answer to an earlier question")
        table.noteQuestion([Self.one])
        table.noteStart(Self.one, 17)
        #expect(table.lost == 7, "the marker at 18 is not")
        table.noteQuestion([Self.one])
        table.noteStart(Self.one, 20)
        #expect(table.lost == 7, "each counts once")
    }

    @Test func `a partition that was emptied before it was read lost its records`() {
        var table = Self.table(committed: 3)
        _ = table.move(Self.one, at: 8, to: 8)
        table.noteQuestion([Self.one])
        table.noteStart(Self.one, 8)
        #expect(table.lost == 5)
    }

    @Test func `a group without offsets lacks no records`() {
        var table = Self.table(committed: nil)
        _ = table.move(Self.one, at: 30, to: 31)
        table.noteQuestion([Self.one])
        table.noteStart(Self.one, 30)
        #expect(table.lost == 0)
    }

    // MARK: The members' shares

    /// As a leader writes them: version, topics with their partitions, its own data.
    private static func assignment(_ topics: [(String, [Int32])]) -> [UInt8] {
        func number<Number: FixedWidthInteger>(_ value: Number) -> [UInt8] {
            withUnsafeBytes(of: value.bigEndian) { Array($0) }
        }
        var bytes = number(Int16(0)) + number(Int32(topics.count))
        for (name, partitions) in topics {
            bytes += number(Int16(name.utf8.count)) + Array(name.utf8) + number(Int32(partitions.count))
            for partition in partitions { bytes += number(partition) }
        }
        return bytes + number(Int32(-1))
    }

    @Test func `a member's partitions are read from its assignment`() {
        let bytes = Self.assignment([("im.events", [0, 3]), ("im.user-state", [1])])
        let share = bytes.withUnsafeBytes { MemberAssignment($0) }
        #expect(share?.partitions == ["im.events": [0, 3], "im.user-state": [1]])
        #expect([UInt8]().withUnsafeBytes { MemberAssignment($0) }?.partitions == [:], "a member without a share")
    }

    @Test func `an assignment that is cut anywhere is none`() {
        let whole = Self.assignment([("im.events", [0, 3])]).dropLast(4)
        for count in 1..<whole.count {
            #expect(Array(whole.prefix(count)).withUnsafeBytes { MemberAssignment($0) } == nil, "\(count)")
        }
        // Counts that no record has room for.
        let huge: [UInt8] = [0, 0, 0x7F, 0xFF, 0xFF, 0xFF]
        #expect(huge.withUnsafeBytes { MemberAssignment($0) } == nil)
    }
}
