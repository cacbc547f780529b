// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Support
import Synchronization
import Telemetry
import Testing

@testable import Worker

@Suite struct DeviceOccupancyTests {
    @Test func leavingACellReportsWhetherAPushWaitsForIt() {
        let occupancy = DeviceOccupancy(bits: 4)
        let cell = occupancy.cell(of: 7)
        #expect(occupancy.take(cell) && !occupancy.isAwaited(cell))
        #expect(!occupancy.leave(cell, shard: 0), "nobody waits")
        #expect(occupancy.take(cell))
        for _ in 0..<2 where occupancy.take(cell) { Issue.record("a taken cell was taken") }
        #expect(occupancy.isAwaited(cell) && occupancy.takenCount == 1)
        #expect(occupancy.leave(cell, shard: 0) && occupancy.takenCount == 0)
        #expect(occupancy.take(cell), "who waited has no claim to it")
    }

    @Test func everyKeyHasACellOfTheTable() {
        for bits in [1, 4, 20] {
            let occupancy = DeviceOccupancy(bits: bits)
            for key in [0, 1, .max, 0x9E37_79B9] as [UInt64] { #expect(Int(occupancy.cell(of: key)) < 1 << bits) }
        }
    }

    @Test func ofTwoShardsOneWaitsForTheOther() {
        let occupancy = DeviceOccupancy()
        var first = DeviceQueues<Int>(sharing: occupancy)
        var second = DeviceQueues<Int>(sharing: occupancy)
        #expect(Self.enter(&first, "a", 1))
        #expect(!Self.enter(&second, "a", 2) && !Self.enter(&second, "a", 3))
        #expect(second.waitingCount == 2)
        #expect(Self.enter(&second, "b", 4), "another device is free")
        #expect(Self.leave(&first, "a") == [] && first.hasLeft)
        #expect(Self.vacate(&second, [occupancy.cell(of: Self.key("a"))]) == [2], "in its order")
        #expect(Self.leave(&second, "a") == [3] && !second.hasLeft)
        #expect(Self.leave(&second, "a") == [] && Self.leave(&second, "b") == [])
        #expect(occupancy.takenCount == 0 && second.waitingCount == 0)
    }

    /// What is claimed before another shard pushed the device may have the older number.
    @Test func aPushKnowsWhetherAnotherShardPushedItsDeviceSince() {
        let now = Mutex<UInt64>(1_000_000_000)
        let occupancy = DeviceOccupancy { now.withLock { $0 } }
        var first = DeviceQueues<Int>(sharing: occupancy, shard: 0)
        var second = DeviceQueues<Int>(sharing: occupancy, shard: 1)
        #expect(Self.enter(&first, "a", 1) && !first.mayShowNumber(Self.key("a"), readSince: 0), "nobody was there")
        now.withLock { $0 += 5_000_000 }
        #expect(Self.leave(&first, "a") == [])
        #expect(Self.enter(&first, "a", 2) && !first.mayShowNumber(Self.key("a"), readSince: 0), "its own")
        #expect(Self.leave(&first, "a") == [])
        #expect(Self.enter(&second, "a", 3))
        #expect(second.mayShowNumber(Self.key("a"), readSince: 1_004_000_000))
        #expect(!second.mayShowNumber(Self.key("a"), readSince: 1_006_000_000), "claimed after that push had ended")
        #expect(Self.leave(&second, "a") == [])
        #expect(Self.enter(&first, "a", 4) && Self.leave(&first, "a") == [])
        #expect(Self.enter(&first, "a", 5))
        #expect(first.mayShowNumber(Self.key("a"), readSince: 1_004_000_000), "one's own push since hides nothing")
        #expect(!DeviceQueues<Int>().mayShowNumber(Self.key("a"), readSince: 0))
    }

    /// Against all leavings of a minute: never false where another shard left the cell since.
    @Test(arguments: 0..<50) func noLeavingOfTheLastMinuteIsMissed(round: Int) {
        var generator = SeededGenerator(seed: .random(in: 0 ... .max))
        var state = CellState()
        // Over the time's end in the cell's bits.
        var nowMs = UInt64(1 << 25) * 7 - 40_000
        var leavings: [(shard: Int, atMs: UInt64)] = []
        for _ in 0..<400 {
            nowMs += UInt64.random(in: 0...(Bool.random(using: &generator) ? 3 : 5_000), using: &generator)
            let shard = [0, 1, 1, 2, 29, 30, 31, 200].randomElement(using: &generator) ?? 0
            if Int.random(in: 0..<3, using: &generator) > 0 {
                state = state.left(by: shard, atMs: nowMs)
                leavings.append((shard, nowMs))
                #expect(state.use == .free)
            }
            let sinceMs = nowMs - .random(in: 0...60_000, using: &generator)
            let isMissed =
                leavings.contains { $0.shard != shard && $0.atMs >= sinceMs }
                && !state.with(.taken).wasLeft(byOtherThan: shard, sinceMs: sinceMs)
            #expect(!isMissed, "seed \(generator.seed)")
        }
    }

    @Test func aShardThatHasMoreForADeviceLetsTheOtherHaveATurn() {
        let occupancy = DeviceOccupancy()
        var first = DeviceQueues<Int>(sharing: occupancy)
        var second = DeviceQueues<Int>(sharing: occupancy)
        let cell = occupancy.cell(of: Self.key("a"))
        for item in [1, 2, 3] { _ = Self.enter(&first, "a", item) }
        _ = Self.enter(&second, "a", 4)
        #expect(Self.leave(&first, "a") == [] && first.hasLeft, "its next one waits, too")
        #expect(Self.vacate(&second, [cell]) == [4])
        #expect(Self.vacate(&first, [cell]) == [], "taken, and awaited again")
        #expect(Self.leave(&second, "a") == [] && second.hasLeft)
        #expect(Self.vacate(&first, [cell]) == [2] && Self.leave(&first, "a") == [3])
    }

    @Test func aShardThatClosesLeavesItsDevicesToTheOthers() async throws {
        let test = try TestLoop()
        let told = Facts<[DeviceOccupancy.Cell]>()
        let occupancy = DeviceOccupancy()
        occupancy.join(shard: 0, loop: test.loop, didVacate: { told.record($0) }, didRelease: { _ in })
        var first = DeviceQueues<Int>(sharing: occupancy)
        var second = DeviceQueues<Int>(sharing: occupancy)
        _ = Self.enter(&first, "a", 1)
        _ = Self.enter(&first, "b", 2)
        _ = Self.enter(&second, "a", 3)
        first.close()
        #expect(try await told.next() == [occupancy.cell(of: Self.key("a"))], "nobody waits for the other")
        #expect(Self.vacate(&second, [occupancy.cell(of: Self.key("a"))]) == [3])
        second.close()
        #expect(occupancy.takenCount == 0)
        await test.end()
    }

    // MARK: A random machine

    /// Up to three shards on one thread, over so few cells that devices share them; what is told comes in any order.
    @Test(arguments: 0..<200) func whateverTheOrderEveryPushGoesOutAndNeverTwoAtOnce(round: Int) {
        var generator = SeededGenerator(seed: .random(in: 0 ... .max))
        var model = Model(shards: Int.random(in: 2...3, using: &generator), bits: round % 2 == 0 ? 2 : 16)
        for _ in 0..<400 { model.step(&generator) }
        while model.isBusy { model.step(&generator, entersMore: false) }
        #expect(model.faults.isEmpty, "seed \(generator.seed)")
        #expect(model.ended.count == model.entered, "every push ends; seed \(generator.seed)")
        #expect(model.occupancy.takenCount == 0, "no cell stays taken; seed \(generator.seed)")
        #expect(model.queues.allSatisfy { $0.busyCount == 0 && $0.waitingCount == 0 }, "seed \(generator.seed)")
        #expect(model.ordersKept, "each shard's pushes to a device go in their order; seed \(generator.seed)")
    }

    private struct Push: Hashable {
        var shard: Int
        var device: Int
        var number: Int
    }

    private struct Model {
        let occupancy: DeviceOccupancy
        var queues: [DeviceQueues<Push>]
        var out: [Push] = []
        var entered = 0
        var ended: [Push] = []
        var faults: [String] = []
        /// Told and not yet heard, by shard.
        var told: [[[DeviceOccupancy.Cell]]]
        /// Went out, in order.
        private var gone: [Push] = []

        init(shards: Int, bits: Int) {
            let occupancy = DeviceOccupancy(bits: bits)
            self.occupancy = occupancy
            queues = (0..<shards).map { DeviceQueues(sharing: occupancy, shard: $0) }
            told = Array(repeating: [], count: shards)
        }

        var isBusy: Bool {
            !out.isEmpty || told.contains { !$0.isEmpty } || queues.contains { $0.hasLeft }
        }

        var ordersKept: Bool {
            Dictionary(grouping: gone) { [$0.shard, $0.device] }.values.allSatisfy { pushes in
                zip(pushes, pushes.dropFirst()).allSatisfy { $0.number < $1.number }
            }
        }

        mutating func step(_ generator: inout SeededGenerator, entersMore: Bool = true) {
            let shard = Int.random(in: 0..<queues.count, using: &generator)
            switch Int.random(in: entersMore ? 0..<6 : 2..<6, using: &generator) {
            case 0, 1:
                let push = Push(shard: shard, device: Int.random(in: 0..<5, using: &generator), number: entered)
                entered += 1
                if queues[shard].enter("device \(push.device)", push) { goOut(push) }
            case 2, 3:
                guard let index = out.indices.randomElement(using: &generator) else { return }
                end(out[index], &generator)
            case 4:
                // As `notifyVacated`, with the hearing left to chance.
                let cells = queues[shard].takeLeft()
                if !cells.isEmpty { for other in told.indices { told[other].append(cells) } }
            default:
                guard !told[shard].isEmpty else { return }
                if queues[shard].vacate(told[shard].removeFirst()) { serve(shard, &generator) }
            }
        }

        private mutating func goOut(_ push: Push) {
            if out.contains(where: { $0.device == push.device }) { faults.append("two at once: \(push)") }
            gone.append(push)
            out.append(push)
        }

        private mutating func end(_ push: Push, _ generator: inout SeededGenerator) {
            out.removeAll { $0 == push }
            ended.append(push)
            if queues[push.shard].leave("device \(push.device)") { serve(push.shard, &generator) }
        }

        private mutating func serve(_ shard: Int, _ generator: inout SeededGenerator) {
            while let turn = queues[shard].nextTurn() {
                switch Int.random(in: 0..<6, using: &generator) {
                case 0:
                    // Gone meanwhile.
                    ended.append(turn.item)
                    queues[shard].pass(turn)
                case 1:
                    // It ends within its own turn.
                    goOut(turn.item)
                    end(turn.item, &generator)
                default: goOut(turn.item)
                }
            }
        }
    }

    // MARK: Threads

    /// Three shards on threads of their own, each with pushes to the same few devices; for the thread sanitizer.
    @Test(.timeLimit(.minutes(5))) func threeThreadsNeverHaveTwoPushesOutToOneDevice() async throws {
        let occupancy = DeviceOccupancy(bits: 2)
        let devices = OutCounts(count: 6)
        let facts = Facts<Int>()
        var loops: [TestLoop] = []
        for shard in 0..<3 {
            let test = try TestLoop("shard-\(shard)")
            loops.append(test)
            await test.run { isolated in
                let simulated = SimulatedShard(
                    shard, test.loop, occupancy, devices, SeededGenerator(seed: .random(in: 0 ... .max))
                ) { facts.record(shard) }
                isolated.keep(simulated)
                simulated.begin(pushes: 2_000)
            }
        }
        for _ in loops { _ = try await facts.next() }
        #expect(devices.overlaps == 0 && devices.isAllIn)
        #expect(occupancy.takenCount == 0)
        for shard in loops.indices { occupancy.part(shard: shard) }
        for loop in loops { await loop.end() }
    }

    /// Pushes that are out, per device, over all threads.
    private final class OutCounts: Sendable {
        private let counts: [Guarded<Int>]
        private let found = Atomic<Int>(0)

        init(count: Int) { counts = (0..<count).map { _ in Guarded(0) } }

        var count: Int { counts.count }
        var overlaps: Int { found.load(ordering: .relaxed) }
        var isAllIn: Bool { counts.allSatisfy { $0.withLock { $0 } == 0 } }

        func goOut(_ device: Int) {
            let before = counts[device].withLock { count in
                defer { count += 1 }
                return count
            }
            if before > 0 { found.add(1, ordering: .relaxed) }
        }

        func comeIn(_ device: Int) { counts[device].withLock { $0 -= 1 } }
    }

    /// Loop-bound: queues, and pushes that end a turn of the loop or more after they went out.
    private final class SimulatedShard {
        private let loop: Loop
        private let devices: OutCounts
        private var queues: DeviceQueues<Int>
        private var generator: SeededGenerator
        private var open = 0
        private var out: [Int] = []
        private let isOver: () -> Void

        init(
            _ shard: Int, _ loop: Loop, _ occupancy: DeviceOccupancy, _ devices: OutCounts,
            _ generator: SeededGenerator, _ isOver: @escaping () -> Void
        ) {
            self.loop = loop
            self.devices = devices
            self.generator = generator
            self.isOver = isOver
            queues = DeviceQueues(sharing: occupancy, shard: shard)
            let held = Unchecked(self)
            occupancy.join(
                shard: shard, loop: loop, didVacate: { held.value?.didVacate($0) }, didRelease: { _ in })
        }

        func begin(pushes: Int) {
            open = pushes
            for _ in 0..<pushes {
                let device = Int.random(in: 0..<devices.count, using: &generator)
                if queues.enter("device \(device)", device) { goOut(device) }
            }
            next()
        }

        private func goOut(_ device: Int) {
            devices.goOut(device)
            out.append(device)
        }

        /// Some of what is out ends, and what was left is told.
        private func turn() {
            out.shuffle(using: &generator)
            for _ in 0..<Int.random(in: 0...out.count, using: &generator) {
                guard let device = out.popLast() else { break }
                devices.comeIn(device)
                open -= 1
                if queues.leave("device \(device)") { serve() }
            }
            queues.notifyVacated()
            if open == 0 { isOver() } else { next() }
        }

        private func next() {
            let held = Unchecked(self)
            loop.post { held.value?.turn() }
        }

        private func didVacate(_ cells: [DeviceOccupancy.Cell]) {
            if queues.vacate(cells) { serve() }
        }

        private func serve() {
            while let turn = queues.nextTurn() { goOut(turn.item) }
            queues.notifyVacated()
        }

        /// A loop-bound object on its way to its own loop.
        private struct Unchecked: @unchecked Sendable {
            weak var value: SimulatedShard?

            init(_ value: SimulatedShard) { self.value = value }
        }
    }

    // MARK: Steps

    private static func key(_ token: String) -> UInt64 { DeviceQueues<Int>.key(of: token) }

    private static func enter(_ queues: inout DeviceQueues<Int>, _ token: String, _ item: Int) -> Bool {
        queues.enter(token, item)
    }

    /// The pushes whose turn comes by it.
    private static func leave(_ queues: inout DeviceQueues<Int>, _ token: String) -> [Int] {
        queues.leave(token) ? turns(&queues) : []
    }

    private static func vacate(_ queues: inout DeviceQueues<Int>, _ cells: [DeviceOccupancy.Cell]) -> [Int] {
        queues.vacate(cells) ? turns(&queues) : []
    }

    private static func turns(_ queues: inout DeviceQueues<Int>) -> [Int] {
        var items: [Int] = []
        while let turn = queues.nextTurn() { items.append(turn.item) }
        return items
    }
}
