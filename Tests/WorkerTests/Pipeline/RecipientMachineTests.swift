// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore
import Support
import Testing

@testable import Worker

@Suite struct DeviceWorkTests {
    @Test func aPushGoesFromItsRouteToItsEnd() {
        var device = DeviceWork.chosen
        #expect(device.isOpen && device.isWaiting)
        device.enqueue(.some)
        #expect(device.isPushing && !device.occupiesDevice, "it waits behind another push")
        device.turnCame()
        #expect(device.occupiesDevice)
        device.send()
        #expect(device.isWithClient)
        holds(device.end() == .openAndDeviceFree)
        holds(device.end() == .nothing, "an end comes once")
    }

    @Test func aPushThatIsQueuedOrSentHasItsTokenToTheEnd() {
        var device = DeviceWork.chosen
        device.merge(DevicePush.someToken)
        #expect(device.push == nil && device.mergingToken != nil, "it is not made yet")
        for step in [{ (device: inout DeviceWork) in device.enqueue(.some) }, { $0.turnCame() }, { $0.send() }] {
            step(&device)
            device.keepOnlyPush()
            #expect(device.isPushing && device.push?.token != nil && device.mergingToken == nil)
        }
        _ = device.end()
        device.keepOnlyPush()
        #expect(device.push != nil && device.push?.token == nil, "a mark may note it")
    }

    @Test func aQueuedPushThatEndsFreesNoDevice() {
        var device = DeviceWork.chosen
        device.enqueue(.some)
        holds(device.replace() == .open)
    }

    @Test func aDeviceThatBacksOffIsFreeForItsNextPushOnce() {
        var device = DeviceWork.chosen
        device.enqueue(.some)
        device.turnCame()
        device.send()
        let first = device.backOff()
        let second = device.backOff()
        #expect(first && !second)
        holds(device.isPushing && device.end() == .open)
    }

    @Test func aResentPushOccupiesItsDeviceAgainAfterBackingOff() {
        var device = DeviceWork.chosen
        device.enqueue(.some)
        device.turnCame()
        device.send()
        holds(!device.resume(), "it did not back off")
        _ = device.backOff()
        let resumed = device.resume()
        #expect(resumed && device.occupiesDevice && device.isWithClient)
        holds(device.end() == .openAndDeviceFree)
        holds(!device.resume(), "it has ended")
    }

    @Test func eventsAfterTheEndChangeNothing() {
        for close in [{ (device: inout DeviceWork) in _ = device.end() }, { _ = $0.replace() }] {
            var device = DeviceWork.chosen
            device.deliver(ackDueNanos: 5)
            #expect(device.ackDueNanos == 5)
            close(&device)
            let closed = device
            device.enqueue(.some)
            device.turnCame()
            device.send()
            _ = device.backOff()
            _ = device.resume()
            device.merge(DevicePush.someToken)
            device.hold()
            device.deliver(ackDueNanos: 9)
            holds(
                device.phase == closed.phase && device.push == nil && device.end() == .nothing
                    && device.replace() == .nothing)
        }
    }
}

@Suite struct RecipientMachineTests {
    @Test func aRecipientIsMarkedOnceAllIsRecorded() {
        var machine = RecipientMachine(Candidate(uid: "u", order: 0))
        holds(machine.decided())
        machine.opened(devices: 2)
        machine.deviceEnded()
        machine.recordSent()
        holds(machine.next(areDeliveriesSettled: true) == .nothing, "a device is open")
        machine.deviceEnded()
        machine.recordSent()
        #expect(machine.awaitsRecordsOnly)
        holds(!machine.recordAcknowledged())
        holds(machine.recordAcknowledged())
        holds(machine.next(areDeliveriesSettled: false) == .awaitDeliveries)
        holds(machine.next(areDeliveriesSettled: true) == .mark)
        holds(machine.didMark())
        holds(machine.hasEnded && !machine.didMark())
    }

    @Test func aDecisionThatNobodyWaitsForAnyMoreIsIgnored() {
        var machine = RecipientMachine(Candidate(uid: "u", order: 0))
        _ = machine.handBack()
        holds(machine.next(areDeliveriesSettled: true) == .end)
        holds(!machine.decided(), "a late reply revives nobody")
        holds(!machine.decideAgain(Candidate(uid: "u", order: 0)) && !machine.readAcks())
        #expect(machine.hasEnded)
    }

    @Test func handedBackWorkIsNotMarked() {
        var machine = RecipientMachine(Candidate(uid: "u", order: 0))
        _ = machine.decided()
        machine.opened(devices: 1)
        machine.leaveUnmarked()
        _ = machine.handBack()
        holds(machine.next(areDeliveriesSettled: true) == .nothing, "its push is on a stream")
        machine.deviceEnded()
        machine.recordSent()
        holds(machine.recordAcknowledged())
        holds(machine.next(areDeliveriesSettled: true) == .end)
    }

    @Test func `a recipient leaves for the topic once the broker has its records, and has no other step`() {
        let record = ParkedRecord(
            app: "im", uid: "u", raw: [], cause: .unavailable, dueMs: 0, writtenMs: 0, id: "mm")
        var machine = RecipientMachine(Candidate(uid: "u", order: 0))
        holds(!machine.leave(with: record), "nothing is decided")
        holds(machine.decided())
        machine.recordSent()
        holds(machine.leave(with: record) && machine.leaving == record)
        holds(machine.next(areDeliveriesSettled: true) == .nothing)
        holds(!machine.decideAgain(Candidate(uid: "u", order: 0)) && !machine.readAcks() && !machine.handBack())
        holds(machine.recordAcknowledged())
        holds(machine.next(areDeliveriesSettled: true) == .leave(record))
        holds(machine.hasEnded && !machine.isMarked)
    }

    /// Whatever the order of answers, rounds, hand-backs and ends: one end, and nothing stays.
    @Test(arguments: [1, 2, 3, 20_261_122] as [UInt64])
    func everyRecipientEndsOnceWhateverTheOrder(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<2_000 { playOne(&random) }
    }

    private func playOne(_ random: inout SeededGenerator) {
        let seed = random.seed
        var world = World()
        var steps = 0
        while !world.machine.hasEnded, steps < 400 {
            steps += 1
            // After some steps nothing new begins, so that what is open has to end.
            world.play(Int.random(in: 0..<(steps < 60 ? 13 : 6), using: &random), &random)
            if world.ends > 1 { break }
        }
        #expect(world.machine.hasEnded && world.ends == 1, "seed \(seed), after \(steps) steps: \(world.machine)")
        #expect(world.machine.openDevices == 0 && world.machine.unackedRecords == 0, "seed \(seed)")
        #expect(world.occupied == 0, "seed \(seed): a device stays occupied")
        let ended = world.machine
        for event in 0..<13 { world.play(event, &random) }
        #expect(world.machine == ended && world.ends == 1, "seed \(seed): something came after the end")
    }

    /// The recipient with its devices, as `Dispatcher` drives them, and what it has left behind.
    private struct World {
        var machine = RecipientMachine(Candidate(uid: "u", order: 0))
        var devices: [DeviceWork] = []
        var occupied = 0
        var ends = 0
        var isHandedBack = false

        mutating func play(_ event: Int, _ random: inout SeededGenerator) {
            switch event {
            case 0: route(Int.random(in: 0...3, using: &random))
            case 1: endOne(&random)
            case 2: if machine.unackedRecords > 0 { _ = machine.recordAcknowledged() }
            case 3: if machine.didMark() { ends += 1 }
            case 4: if machine.readsAcks { _ = machine.didReadAcks() }
            case 5: if machine.waitsForTwin { _ = machine.decideAgain(Candidate(uid: "u", order: 0)) }
            case 6: if !isHandedBack { _ = machine.decideAgain(Candidate(uid: "u", order: 0)) }
            case 7: _ = machine.readAcks()
            case 8: machine.candidate?.phase = .waitingForTwin
            case 9: advance(&random)
            case 10: backOffOne(&random)
            case 11: leave()
            default: handBack()
            }
            endIfComplete()
        }

        private mutating func route(_ count: Int) {
            guard machine.decided() else { return }
            for _ in 0..<(devices.count < 12 ? count : 0) {
                var device = DeviceWork.chosen
                device.enqueue(.some)
                devices.append(device)
            }
            machine.opened(
                devices: devices.count < 12 + count ? devices.filter(\.isOpen).count - Int(machine.openDevices) : 0)
        }

        private mutating func advance(_ random: inout SeededGenerator) {
            guard let index = devices.indices.randomElement(using: &random) else { return }
            let wasOccupied = devices[index].occupiesDevice
            if devices[index].phase == .queued { devices[index].turnCame() } else { devices[index].send() }
            if !wasOccupied, devices[index].occupiesDevice { occupied += 1 }
        }

        private mutating func backOffOne(_ random: inout SeededGenerator) {
            guard let index = devices.indices.randomElement(using: &random) else { return }
            if devices[index].backOff() { occupied -= 1 } else if devices[index].resume() { occupied += 1 }
        }

        private mutating func endOne(_ random: inout SeededGenerator) {
            guard let index = devices.indices.filter({ devices[$0].isOpen }).randomElement(using: &random) else {
                return
            }
            close(index) { $0.end() }
            machine.recordSent()
        }

        private mutating func close(_ index: Int, _ by: (inout DeviceWork) -> DeviceWork.Left) {
            let left = by(&devices[index])
            guard left != .nothing else { return }
            machine.deviceEnded()
            if left == .openAndDeviceFree { occupied -= 1 }
        }

        private mutating func leave() {
            let record = ParkedRecord(
                app: "im", uid: "u", raw: [], cause: .unavailable, dueMs: 0, writtenMs: 0, id: "mm")
            guard !isHandedBack, machine.leave(with: record) else { return }
            for index in devices.indices where devices[index].isOpen { close(index) { $0.replace() } }
        }

        private mutating func handBack() {
            isHandedBack = true
            _ = machine.handBack()
            for index in devices.indices where devices[index].isOpen && !devices[index].isWithClient {
                close(index) { $0.replace() }
                machine.leaveUnmarked()
            }
        }

        private mutating func endIfComplete() {
            switch machine.next(areDeliveriesSettled: true) {
            case .end, .leave: ends += 1
            case .nothing, .awaitDeliveries, .mark: break
            }
        }
    }
}

extension DeviceWork {
    fileprivate static var chosen: DeviceWork {
        DeviceWork(route: Route(device: "phone", way: .apns(token: 0, copyTo: nil)))
    }
}

extension DevicePush {
    fileprivate static var someToken: BoundToken {
        let record = TokenRecord(
            hex: "ab", environment: .production, topic: "com.example.im", type: .alert, boundMs: 0)
        return BoundToken(device: "phone", record: record, version: 0)
    }

    fileprivate static var some: DevicePush {
        DevicePush(
            token: someToken, id: PushID(high: 1, low: 1), mayHaveReport: true, startedNanos: 0, checkedNanos: 0)
    }
}

/// `#expect` takes no call that changes a value, so the value comes first.
private func holds(_ isSo: Bool, _ comment: Comment? = nil, at location: SourceLocation = #_sourceLocation) {
    #expect(isSo, comment, sourceLocation: location)
}
