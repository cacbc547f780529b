// SPDX-License-Identifier: Apache-2.0
import Kafka
import PushCore
import Support
import Testing

@testable import Worker

@Suite(.timeLimit(.minutes(10))) struct ParkingTests {
    @Test(
        arguments: [
            (2, .recordedWithoutDevice), (9, .accepted), (10, .failed), (11, .offeredSMS), (16, .clearsBadge),
            (22, .reached),
        ] as [(Int, RecipientJob.Flags)])
    func eachFactOfAStoredRecordHasItsBitForEver(bit: Int, flag: RecipientJob.Flags) {
        #expect(ParkedFacts(rawValue: 1 << bit).flags == flag)
        #expect(ParkedFacts(of: flag, .mayExist).rawValue == 1 << bit)
    }

    @Test func aRecipientThatOwesAClaimSaysSoAndItsReaderClaimsAnew() {
        let facts = ParkedFacts(of: [.staysInMemory, .forced], .owed(counts: false))
        #expect(facts == .owesClaim && facts.rawValue == 4096 && facts.flags.isEmpty)
        let counting = ParkedFacts(of: [], .owed(counts: true))
        #expect(counting.rawValue == 4096 + 1 << 31 && counting.openMark == .owed(counts: true))
    }

    @Test func aRecordThatCountsItsSourcesOutcomesHasABitForEverAndNoFlag() {
        #expect(ParkedFacts.countsSource.rawValue == 1 << 23 && ParkedFacts.countsSource.flags.isEmpty)
    }

    private static func work(
        _ id: String, uid: String = "u", app: String = "im", dueMs: Int64, writtenMs: Int64 = 0,
        cause: ParkCause = .unavailable, partition: Int32 = 0
    ) -> ParkedWork {
        let batch = ParkedBatch(.alone(partition, topic: 1, .parked))
        batch.readMs = writtenMs
        return ParkedWork(
            ParkedRecord(
                app: app, uid: uid, raw: [], cause: cause, dueMs: dueMs, writtenMs: writtenMs, id: id), of: batch)
    }

    private static func read(_ wheel: inout ParkedWheel, _ works: [ParkedWork]) {
        for work in works { wheel.read(work) }
    }

    private static func putBack(_ work: ParkedWork, _ wheel: inout ParkedWheel) {
        wheel.putBack(work.record, from: work)
        wheel.ended(work)
    }

    private static func taken(_ wheel: inout ParkedWheel, nowMs: Int64) -> [ParkedWork] {
        var taken: [ParkedWork] = []
        while let work = wheel.next(nowMs: nowMs, mayBegin: { _ in true }) { taken.append(work) }
        return taken
    }

    @Test func recordsOfOneUserBeginInTheirOrderAndOthersDoNotWait() {
        var wheel = ParkedWheel()
        Self.read(
            &wheel,
            [
                Self.work("1", dueMs: 50), Self.work("2", dueMs: 10), Self.work("a", uid: "other", dueMs: 20),
                Self.work("held", dueMs: 600, cause: .desktopFirst),
            ])
        #expect(Self.taken(&wheel, nowMs: 9).isEmpty)
        #expect(Self.taken(&wheel, nowMs: 20).map(\.record.id) == ["a"])
        #expect(Self.taken(&wheel, nowMs: 60).map(\.record.id) == ["1", "2"])
        #expect(Self.taken(&wheel, nowMs: 600).map(\.record.id) == ["held"])
        #expect(wheel.count == 0)
    }

    @Test func `scheduled messages begin by their time, and nobody waits for them`() {
        var wheel = ParkedWheel()
        let works = [("late", 50), ("soon", 10), ("second", 50)].map { id, dueMs in
            Self.work(id, dueMs: Int64(dueMs), cause: .scheduled)
        }
        for work in works { work.record.uid = nil }
        Self.read(&wheel, works + [Self.work("usual", dueMs: 20)])
        #expect(wheel.scheduledCount == 3)
        #expect(Self.taken(&wheel, nowMs: 20).map(\.record.id) == ["soon", "usual"])
        #expect(Self.taken(&wheel, nowMs: 50).map(\.record.id) == ["late", "second"])
        #expect(wheel.scheduledCount == 0 && wheel.count == 0)
    }

    @Test func `background pushes begin by their time, and nobody waits for them`() {
        var wheel = ParkedWheel()
        Self.read(
            &wheel,
            [("late", 50), ("soon", 10), ("second", 50)].map { id, dueMs in
                Self.work(id, dueMs: Int64(dueMs), cause: .background)
            } + [Self.work("usual", dueMs: 20)])
        #expect(Self.taken(&wheel, nowMs: 10).map(\.record.id) == ["soon"])
        #expect(Self.taken(&wheel, nowMs: 20).map(\.record.id) == ["usual"])
        #expect(wheel.count == 2)
    }

    @Test func workParkedAgainKeepsItsPlaceBeforeLaterWork() {
        var wheel = ParkedWheel()
        Self.read(&wheel, ["1", "2", "3"].map { Self.work($0, dueMs: 1) })
        let first = wheel.next(nowMs: 1) { _ in true }
        let second = wheel.next(nowMs: 1) { _ in true }
        for work in [second, first] {
            guard let work else { continue }
            work.record.dueMs = 30
            Self.putBack(work, &wheel)
        }
        #expect(Self.taken(&wheel, nowMs: 2000).map(\.record.id) == ["1", "2", "3"])
    }

    @Test func laterRecordsBeginAfterEarlierOnesInProgress() {
        var wheel = ParkedWheel()
        Self.read(&wheel, [Self.work("1", dueMs: 1), Self.work("2", dueMs: 1)])
        let begun = Self.taken(&wheel, nowMs: 1)
        #expect(begun.map(\.record.id) == ["1", "2"])
        Self.read(&wheel, [Self.work("3", dueMs: 1), Self.work("other", uid: "other", dueMs: 1)])
        #expect(Self.taken(&wheel, nowMs: 100).map(\.record.id) == ["other"])
        wheel.ended(begun[1])
        #expect(Self.taken(&wheel, nowMs: 200).isEmpty)
        begun[0].record.dueMs = 250
        Self.putBack(begun[0], &wheel)
        #expect(Self.taken(&wheel, nowMs: 249).isEmpty)
        #expect(Self.taken(&wheel, nowMs: 300).map(\.record.id) == ["1", "3"])
    }

    @Test func anEventThatWasParkedAsItCameWaitsForTheEarlierOneThatWasParkedOnItsWay() {
        var wheel = ParkedWheel()
        for (id, kafkaMs) in [("2", 20), ("1", 10)] as [(String, Int64)] {
            let work = Self.work(id, dueMs: 1)
            work.record.come(from: EventSource(kafkaMs: kafkaMs))
            wheel.read(work)
        }
        #expect(Self.taken(&wheel, nowMs: 1).map(\.record.id) == ["1", "2"])
    }

    /// The later one was parked first, because it waited for the earlier one in a full window.
    @Test func aRecordWaitsForTheEarlierOneThatIsOnItsWayToTheTopic() {
        var wheel = ParkedWheel()
        func work(_ id: String, offset: Int64) -> ParkedWork {
            let work = Self.work(id, dueMs: 1)
            work.record.come(from: EventSource(partition: 0, offset: offset, kafkaMs: 1))
            return work
        }
        let (earlier, later, last) = (work("1", offset: 1), work("2", offset: 2), work("3", offset: 3))
        Self.read(&wheel, [later, last])
        wheel.expect(Deferred([earlier.record]), nowMs: 0)
        #expect(Self.taken(&wheel, nowMs: 100).isEmpty)
        wheel.arrived(Deferred([earlier.record]))
        wheel.read(earlier)
        #expect(Self.taken(&wheel, nowMs: 200).map(\.record.id) == ["1", "2", "3"])
        // A record that another worker reads.
        wheel = ParkedWheel()
        Self.read(&wheel, [later])
        wheel.expect(Deferred([earlier.record]), nowMs: 0)
        #expect(Self.taken(&wheel, nowMs: ParkedOnTheWay.waitMs - 100).isEmpty)
        #expect(Self.taken(&wheel, nowMs: ParkedOnTheWay.waitMs).map(\.record.id) == ["2"])
    }

    /// Its event has other recipients that have neither ended nor wait yet.
    @Test func aRecordWaitsForTheEarlierRecipientThatWaitsInMemory() {
        var wheel = ParkedWheel()
        let (earlier, later) = (Self.work("1", dueMs: 1), Self.work("2", dueMs: 1))
        earlier.record.come(from: EventSource(partition: 0, offset: 1, kafkaMs: 1))
        later.record.come(from: EventSource(partition: 0, offset: 2, kafkaMs: 1))
        wheel.read(later)
        wheel.expect(earlier.record, nowMs: 0)
        #expect(Self.taken(&wheel, nowMs: 100).isEmpty)
        wheel.expect(Deferred([earlier.record]), nowMs: 100)
        #expect(Self.taken(&wheel, nowMs: 200).isEmpty)
        wheel.arrived(Deferred([earlier.record]))
        wheel.read(earlier)
        #expect(Self.taken(&wheel, nowMs: 300).map(\.record.id) == ["1", "2"])
        // Left to another owner.
        wheel = ParkedWheel()
        wheel.read(later)
        wheel.expect(earlier.record, nowMs: 300)
        wheel.forget([earlier.record])
        #expect(Self.taken(&wheel, nowMs: 400).map(\.record.id) == ["2"])
    }

    /// The shard that parked it and the shard that reads the user's records may be two.
    @Test func aRecordWaitsForAnEarlierOneThatAnotherShardParked() {
        let onTheWay = ParkedOnTheWay()
        let writer = ParkedWheel(onTheWay)
        var reader = ParkedWheel(onTheWay)
        let (earlier, later) = (Self.work("1", dueMs: 1), Self.work("2", dueMs: 1))
        earlier.record.come(from: EventSource(partition: 0, offset: 1, kafkaMs: 1))
        later.record.come(from: EventSource(partition: 0, offset: 2, kafkaMs: 1))
        reader.read(later)
        writer.expect(Deferred([earlier.record]), nowMs: 0)
        #expect(Self.taken(&reader, nowMs: 100).isEmpty)
        reader.arrived(Deferred([earlier.record]))
        reader.read(earlier)
        #expect(Self.taken(&reader, nowMs: 200).map(\.record.id) == ["1", "2"])
    }

    /// Events of one millisecond, or of producers whose clocks differ; the partitions' offsets rise, whatever order the
    /// records are read in.
    @Test func eventsOfAPartitionBeginInTheOrderOfItsOffsets() {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            var wheel = ParkedWheel()
            let sources = (0..<12).map {
                EventSource(partition: $0 % 3, offset: Int64($0 / 3), kafkaMs: .random(in: 1...3, using: &random))
            }
            for source in sources.shuffled(using: &random) {
                let work = Self.work("\(source.offset)", dueMs: 1)
                work.record.come(from: source)
                wheel.read(work)
            }
            let taken = Self.taken(&wheel, nowMs: 1).map(\.record.source)
            #expect(taken.count == 12)
            for partition in Int32(0)..<3 {
                let offsets = taken.filter { $0.partition == partition }.map(\.offset)
                #expect(offsets == offsets.sorted(), "partition \(partition)")
            }
        }
    }

    @Test func pushesDelayedByTheirAppAreRetriedOnceASecond() {
        var wheel = ParkedWheel()
        Self.read(&wheel, (0..<100).map { Self.work("x", uid: "u\($0)", dueMs: 0) })
        var asked = 0
        for nowMs in stride(from: Int64(0), through: 2999, by: 100) {
            let next = wheel.next(nowMs: nowMs) { _ in
                asked += 1
                return false
            }
            #expect(next == nil)
        }
        #expect(asked == 300)
    }

    @Test func aFullPartitionsOldRecordsAreWrittenAgain() {
        var wheel = ParkedWheel()
        let (first, second) = (Self.work("1", dueMs: 0), Self.work("2", dueMs: 0, writtenMs: 20_000))
        first.record.come(from: EventSource(partition: 0, offset: 1, kafkaMs: 1))
        second.record.come(from: EventSource(partition: 0, offset: 2, kafkaMs: 1))
        Self.read(&wheel, [first, second, Self.work("b", uid: "else", dueMs: 900_000, partition: 7)])
        let full: Set = [TopicPartition(topic: 1, partition: 0)]
        #expect(wheel.move(from: full, atMost: 9, nowMs: 29_999).isEmpty)
        let moved = wheel.move(from: full, atMost: 9, nowMs: 30_000)
        #expect(moved.map { $0.open.map(\.id) } == [["1"]] && wheel.count == 2)
        // The later one does not begin before the earlier one is read again.
        wheel.expect(Deferred(moved.flatMap(\.open)), from: first.partition, nowMs: 30_000)
        #expect(Self.taken(&wheel, nowMs: 300_000).isEmpty)
        wheel.arrived(Deferred(moved.flatMap(\.open)))
        wheel.read(first)
        #expect(Self.taken(&wheel, nowMs: 300_100).map(\.record.id) == ["1", "2"])
    }

    @Test func `a record that the broker refused is written again no sooner than one that was just read`() {
        var wheel = ParkedWheel()
        let work = Self.work("1", dueMs: 900_000)
        Self.read(&wheel, [work])
        let full: Set = [work.partition]
        let moved = wheel.move(from: full, atMost: 9, nowMs: 30_000)
        wheel.stay(moved.flatMap(\.open), of: work.batch, nowMs: 30_000)
        #expect(wheel.move(from: full, atMost: 9, nowMs: 59_999).isEmpty)
        #expect(wheel.move(from: full, atMost: 9, nowMs: 60_000).count == 1)
    }

    @Test func `of an app's excess the newest records are written again, and only those count as moved`() {
        var wheel = ParkedWheel()
        Self.read(&wheel, (0..<40).map { Self.work("\($0)", uid: "u\($0)", dueMs: 900_000) })
        var asked = 0
        let moved = wheel.move(from: [TopicPartition(topic: 1, partition: 0)], atMost: 3, nowMs: 2_000) { _ in
            true
        } isExcess: { _ in
            asked += 1
            return asked > 1
        }
        #expect(moved.map { $0.open.map(\.id) } == [["38"], ["37"], ["36"]] && asked == 4 && wheel.count == 37)
    }

    /// Such a record would be read behind later work of its conversation, and would then have to stay in a full window.
    @Test func `no record in excess is written behind later work of its conversation that stays`() {
        var wheel = ParkedWheel()
        let works = (0..<8).map { number in
            let work = Self.work("\(number)", dueMs: 900_000)
            work.record.come(from: EventSource(partition: 0, offset: Int64(number), kafkaMs: 1))
            return work
        }
        Self.read(&wheel, works)
        let moved = wheel.move(from: [works[0].partition], atMost: 4, nowMs: 2_000, mayExceed: { _ in true })
        #expect(moved.flatMap(\.open).allSatisfy { !wheel.isAwaited($0) } && wheel.count == 4)
    }

    @Test func theRecipientsOfARecordAreWrittenAgainTogetherIfNoneHasBegun() {
        var wheel = ParkedWheel()
        let batch = ParkedBatch(.alone(topic: 1, .parked))
        for (uid, dueMs) in [("u", 0), ("v", 900_000)] as [(String, Int64)] {
            wheel.read(
                ParkedWork(
                    ParkedRecord(app: "im", uid: uid, raw: [], cause: .rate, dueMs: dueMs, writtenMs: 0, id: "m"),
                    of: batch))
        }
        let full: Set = [batch.partition]
        let begun = Self.taken(&wheel, nowMs: 1)
        #expect(batch.open == 2 && begun.map(\.record.uid) == ["u"])
        #expect(wheel.move(from: full, atMost: 9, nowMs: 60_000).isEmpty)
        wheel.putBack(begun[0].record, from: begun[0])
        wheel.ended(begun[0])
        #expect(wheel.move(from: full, atMost: 9, nowMs: 60_000).map { Set($0.open.map(\.uid)) } == [["u", "v"]])
        #expect(wheel.count == 0)
    }

    /// A dictionary's order differs from one wheel to the next.
    @Test func `recipients that were put back together are written again in one order, whichever wheel has them`() {
        func moved() -> [[String?]] {
            var wheel = ParkedWheel()
            let batch = ParkedBatch(.alone(topic: 1, .parked))
            func record(_ uid: String?) -> ParkedRecord {
                ParkedRecord(app: "im", uid: uid, raw: [], cause: .rate, dueMs: 0, writtenMs: 0, id: "m")
            }
            wheel.read(ParkedWork(record(nil), of: batch))
            for work in Self.taken(&wheel, nowMs: 1) {
                for number in 0..<20 { wheel.putBack(record("u\(number)"), from: work) }
                wheel.ended(work)
            }
            return wheel.move(from: [batch.partition], atMost: 9, nowMs: 60_000).map { $0.open.map(\.uid) }
        }
        let first = moved()
        #expect(first.map(\.count) == [20])
        #expect((0..<20).allSatisfy { _ in moved() == first })
    }

    @Test func eachAppsDueWorkBeginsInTurn() {
        var wheel = ParkedWheel()
        Self.read(&wheel, (0..<100).map { Self.work("a\($0)", uid: "u\($0)", dueMs: 0) })
        Self.read(&wheel, (0..<2).map { Self.work("b\($0)", uid: "u\($0)", app: "other", dueMs: 5) })
        let begun = (0..<4).compactMap { _ in wheel.next(nowMs: 10) { _ in true }?.record.app }
        #expect(begun.count { $0 == "other" } == 2)
    }

    @Test func anAppHasItsShareOfTheParkedWindow() {
        var limits = PipelineLimits()
        limits.window.records = 100
        limits.isShared = true
        var shares = ParkedShares()
        let batches = (0..<40).map { _ in
            let batch = ParkedBatch(.alone(3, topic: 1, .parked))
            batch.size = ("im", 10)
            return batch
        }
        for batch in batches { shares.add(batch) }
        let partition = batches[0].partition
        #expect(
            shares.isFull("im", partition, share: 0.5, limits) && !shares.isFull("other", partition, share: 0.5, limits)
        )
        shares.remove(batches[0])
        #expect(!shares.isFull("im", partition, share: 0.5, limits))
        batches[1].size.bytes = limits.window.bytes
        shares.add(batches[1])
        #expect(shares.isFull("im", TopicPartition(topic: 1, partition: 9), share: 0.5, limits))
        shares.forget { $0 == partition }
        #expect(!shares.isFull("im", partition, share: 0.5, limits))
    }

    /// Two apps with long backlogs filled the window together, and a third one's records were not read.
    @Test func `of several apps that fill the parked window the one with most has too much`() {
        var limits = PipelineLimits()
        limits.window.records = 100
        limits.isShared = true
        var shares = ParkedShares()
        func add(_ app: String, _ count: Int) {
            for _ in 0..<count {
                let batch = ParkedBatch(.alone(3, topic: 1, .parked))
                batch.size = (app, 10)
                shares.add(batch)
            }
        }
        func isFull(_ app: String) -> Bool {
            shares.isFull(app, TopicPartition(topic: 1, partition: 3), share: 0.5, limits)
        }
        add("im", 20)
        add("shop", 25)
        #expect(!isFull("im") && !isFull("shop") && !isFull("third"))
        add("im", 6)
        #expect(isFull("im") && !isFull("shop") && !isFull("third"))
    }

    /// The window of one app's records, which are written again, has room after a moment.
    @Test func `a full partition of parked records is read again as soon as it has room`() {
        let parked = TopicPartition(topic: 1, partition: 0)
        var limits = OffsetLedger.Limits(records: 10)
        limits.minimumPauseNanos = 3_000_000_000
        var ledgers = InputLedgers([.userState, .parked], limits: limits)
        ledgers.assign(parked, nowNanos: 0)
        var slots: [OffsetLedger.Slot] = []
        for offset in Int64(0)..<8 {
            let receipt = ledgers.with(parked) { $0.receive(parked, offset: offset, bytes: 1, nowNanos: 0) }
            if case .tracked(let slot) = receipt { slots.append(slot) }
        }
        #expect(ledgers.relieve(parked, of: [parked], nowNanos: 0) && ledgers.fullPartitions == [parked])
        for slot in slots { _ = ledgers.with(.parked) { $0.settle(slot) } }
        #expect(ledgers.relieve(parked, of: [parked], nowNanos: 1_000_000) && ledgers.fullPartitions.isEmpty)
    }

    @Test func recordsAreWrittenAgainNoFasterThanTheAllowance() {
        var shares = ParkedShares()
        var bytes = 0
        for nowMs in Int64(10_000)..<12_000 {
            while shares.mayMove(100_000, nowMs: nowMs) { bytes += 100_000 }
        }
        #expect(bytes > 2 * ParkedShares.bytesPerSecond && bytes < 4 * ParkedShares.bytesPerSecond)
    }

    @Test func workOfAnotherOwnerIsForgotten() {
        var wheel = ParkedWheel()
        Self.read(&wheel, [Self.work("1", dueMs: 0), Self.work("2", uid: "v", dueMs: 0, partition: 3)])
        wheel.forget { $0.partition == 3 }
        #expect(wheel.count == 1)
        #expect(Self.taken(&wheel, nowMs: 0).map(\.record.id) == ["1"])
    }

    /// Any order of reads, begins, ends, returns and moves: each record begins, those of a user in their order.
    @Test func noRecordIsLostOrOvertakesItsUsers() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        var wheel = ParkedWheel()
        var topic: [ParkedWork] = (0..<300).map {
            let work = Self.work(
                "\($0)", uid: "u\(Int.random(in: 0..<8, using: &random))", dueMs: .random(in: 0...5000, using: &random))
            work.record.come(from: EventSource(partition: 0, offset: Int64($0), kafkaMs: 1))
            return work
        }
        var begun: [ParkedWork] = []
        var ended: [String: [Int]] = [:]
        var nowMs: Int64 = 0
        while !topic.isEmpty || wheel.count > 0 || !begun.isEmpty {
            nowMs += 100
            for _ in 0..<min(topic.count, 7) {
                let work = topic.removeFirst()
                wheel.arrived(Deferred([work.record]))
                wheel.read(work)
            }
            for _ in 0..<5 {
                if let work = wheel.next(nowMs: nowMs, mayBegin: { _ in true }) { begun.append(work) }
            }
            while let place = begun.indices.randomElement(using: &random), Bool.random(using: &random) {
                // Of one user the first that was begun ends first, as the device's queue has it.
                let user = begun[place].record.uid
                guard let first = begun.firstIndex(where: { $0.record.uid == user }) else { break }
                let work = begun.remove(at: first)
                if nowMs < 8000, Int.random(in: 0..<4, using: &random) == 0 {
                    for other in [work] + begun where other.record.uid == user {
                        other.record.dueMs = nowMs + 500
                        Self.putBack(other, &wheel)
                    }
                    begun.removeAll { $0.record.uid == user }
                } else {
                    wheel.ended(work)
                    ended[user ?? "", default: []].append(try #require(Int(work.record.id)))
                }
            }
            if nowMs.isMultiple(of: 1000), nowMs < 20_000 {
                let partition = TopicPartition(topic: 1, partition: 0)
                for (_, open) in wheel.move(from: [partition], atMost: 20, nowMs: nowMs + 60_000) {
                    wheel.expect(Deferred(open), from: partition, nowMs: nowMs)
                    for record in open {
                        let work = Self.work("", dueMs: 0, writtenMs: nowMs)
                        work.record = record
                        topic.append(work)
                    }
                }
            }
        }
        #expect(ended.values.reduce(0) { $0 + $1.count } == 300)
        for (user, ids) in ended { #expect(ids == ids.sorted(), "\(user)") }
    }

    @Test func oneAppMayHaveItsShareAndAloneAllOfIt() {
        var limits = PipelineLimits()
        limits.recipientsMax = 100
        limits.expandingMax = 10
        var app = AppInHand(share: 0.5)
        app.recipients = 50
        #expect(!app.isFull(limits, partition: 0) && app.hasRoom(limits))
        limits.isShared = true
        #expect(app.isFull(limits, partition: 0) && !app.hasRoom(limits) && !app.hasRoomAgain(limits))
        app.recipients = 24
        #expect(!app.isFull(limits, partition: 0) && app.hasRoomAgain(limits))
        app.bytes = limits.window.bytes / 2
        #expect(app.isFull(limits, partition: 0))
        app.bytes = 0
        app.expanding = 5
        #expect(app.isFull(limits, partition: 0))
    }

    @Test func oneAppMayHaveItsShareOfASmallWindow() {
        var limits = PipelineLimits()
        limits.window.records = 1000
        limits.isShared = true
        var app = AppInHand(share: 0.2)
        app.ofPartition[3] = 127
        #expect(!app.isFull(limits, partition: 3))
        app.ofPartition[3] = 128
        #expect(
            app.isFull(limits, partition: 3), "a fifth of 636 records: 800, without 100 being parked and a poll of 64")
        #expect(!app.isFull(limits, partition: 4))
        limits.isShared = false
        #expect(!app.isFull(limits, partition: 3), "alone it has all")
    }

    @Test func theEventsOfAConversationAreCountedAcrossShards() throws {
        let seen = try ScriptedShard.withPipeline { world, pipeline in
            pipeline.work.share()
            let key = ConversationKey("im", "c").hash
            let job = try world.message(origin: .alone(4))
            var seen: [String] = []
            func look() {
                seen.append("\(pipeline.shard.conversations.contains(key)) \(job.app.inHand.ofPartition[4] ?? 0)")
            }
            look()
            pipeline.work.insert(job)
            look()
            _ = pipeline.work.release(job)
            look()
            return seen
        }
        #expect(seen == ["false 0", "true 1", "false 0"])
    }

    @Test func aBlockingAppIsDetectedAndLaterDetectedSooner() {
        var limits = PipelineLimits()
        limits.isShared = true
        limits.pushesAheadMax = 100
        var app = AppInHand(share: 0.5)
        app.noteWaiting(pushesAhead: 80, isHeld: false, limits, nowNanos: 1)
        #expect(app.blockedNanos == nil, "nobody waits for it")
        app.noteWaiting(pushesAhead: 80, isHeld: true, limits, nowNanos: 2)
        #expect(app.blockedNanos == 2)
        app.noteWaiting(pushesAhead: 13, isHeld: false, limits, nowNanos: 3)
        #expect(app.blockedNanos == 2)
        app.noteWaiting(pushesAhead: 12, isHeld: false, limits, nowNanos: 4)
        #expect(app.blockedNanos == nil)
        app.noteWaiting(pushesAhead: 50, isHeld: false, limits, nowNanos: 1_000_000_000)
        #expect(app.blockedNanos == 1_000_000_000)
    }

    @Test func recipientsWaitingToBeParkedLeaveInTheirOrder() {
        let devices = ParkedDevices()
        let recipients = [3, 1, 2].map { (order: UInt64($0), ref: WorkRef(slot: $0, generation: 1)) }
        for recipient in recipients { devices.wait(7, recipient.ref, order: recipient.order) }
        #expect(!devices.hasWaiting(7, before: 1) && devices.hasWaiting(7, before: 2))
        #expect(!devices.hasWaiting(8, before: 9))
        #expect(devices.leave(7, order: 2) == nil, "the first is still there")
        #expect(devices.leave(7, order: 1) == recipients[0].ref)
        #expect(!devices.hasWaiting(7, before: 3))
        #expect(devices.leave(7, order: 3) == nil && devices.isEmpty)
    }
}
