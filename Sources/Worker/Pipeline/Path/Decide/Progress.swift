// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore

/// The state of a recipient before the present decision, by device: what earlier tries and rounds did. With the decision it
/// determines the `Plan`.
///
/// A plain value: the worker makes it from a recipient's job, and `explain` from the mark of an earlier try.
struct Progress {
    /// Devices with a route in this try, in the order of `RecipientJob.devices`.
    var devices: [Device] = []
    /// Devices with a final record that are not among `devices`.
    var recorded: [String] = []
    /// Devices that came back from the topic: each gets a route or an end.
    var returned: [String] = []
    /// Devices with a connection without a timely ack.
    var silent: [String] = []
    /// Devices that acknowledged a delivery of this try or of an earlier one.
    var acknowledged: [String] = []
    /// Pushes in the mark that APNs accepted: of an earlier try, of another worker, or of an earlier round.
    var accepted: [EarlierPush] = []
    /// The other notes in the mark, in the first round after a try that did not finish.
    var earlierTry: EarlierTry?
    /// Indices of the user's tokens that were pushed when their device had another name.
    var pushedTokens: [Int] = []
    /// Devices that came back wait no longer for a desktop, because one acknowledged by now.
    var desktopHasIt = false
    /// A push of the recipient was accepted, possibly to a device that is not named here.
    var hasAccepted = false
    var isRecordedWithoutDevice = false

    struct Device {
        let name: String
        let standing: Standing

        init(_ name: String, _ standing: Standing) {
            self.name = name
            self.standing = standing
        }
    }

    /// How the present decision may change the route of a device.
    enum Standing: String, CaseIterable {
        /// The route was given up, and nothing is recorded.
        case replaced
        /// The device is held for a desktop, or waits to be parked: it takes the route of the present decision.
        case waiting
        /// The same user bound another token to it: its push takes the route of the present decision, or ends.
        case rebound
        /// The push waits for its turn: a deny ends it.
        case queued
        /// The device may still acknowledge, or waits for its burst: only expiry ends the route.
        case pending
        /// The push is out, or the end is recorded: no decision changes that.
        case settled
    }

    struct EarlierTry {
        /// Devices with a delivery, or a recorded end, of the earlier try.
        var addressed: [String] = []
        /// The reason for which the earlier try recorded the recipient without a device, or was about to.
        var withoutDevice: Reason?

        init(addressed: [String] = [], withoutDevice: Reason? = nil) {
            self.addressed = addressed
            self.withoutDevice = withoutDevice
        }

        init(_ notes: EarlierNotes?) {
            self.init(addressed: notes?.addressed ?? [], withoutDevice: notes?.withoutDevice)
        }
    }

    /// Adds the notes about devices in the mark.
    mutating func add(_ notes: EarlierNotes?) {
        guard let notes else { return }
        accepted = notes.accepted
        devices += notes.closed.map { Device($0, .settled) }
    }

    /// Nothing was done for any device: each route of the decision begins.
    var isUntouched: Bool { devices.isEmpty && recorded.isEmpty && accepted.isEmpty }

    /// Devices of it were in the topic, or have final records from there: it was not parked whole before its decision.
    var hasParkedDevices: Bool { !returned.isEmpty || !recorded.isEmpty }

    /// An earlier try decided for the recipient's devices, and may have recorded any of them.
    var mayHaveRecords: Bool { !hasParkedDevices && earlierTry != nil && earlierTry?.withoutDevice == nil }

    /// Whether the device keeps its route, or has its record: another route would be a second alert.
    func keepsRoute(_ device: String) -> Bool {
        devices.contains {
            switch $0.standing {
            case .replaced, .waiting, .rebound: false
            case .queued, .pending, .settled: $0.name.isSame(as: device)
            }
        }
    }

    func isRecorded(_ device: String) -> Bool { recorded.containsSame(device) || accepted.containsSame(device) }

    /// Whether some device has a record of its own, or will have one, so that every device gets one.
    ///
    /// - Parameter reason: why nothing more goes to the recipient. The only connection of a user without tokens that did not
    ///   acknowledge is no such device: the record `no_token` is the recipient's.
    func hasDeviceVerdicts(_ reason: Reason) -> Bool {
        if hasParkedDevices || hasAccepted || !accepted.isEmpty { return true }
        guard reason == .noToken, let first = devices.first?.name else { return !devices.isEmpty || !silent.isEmpty }
        return devices.contains {
            switch $0.standing {
            case .replaced, .waiting: !$0.name.isSame(as: first)
            case .rebound, .queued, .pending, .settled: true
            }
        }
    }

    /// The devices that no round could reach: their routes were given up, and nothing took their place. At the recipient's end, or
    /// when its other devices are parked, each gets a record, unless the recipient has one without device.
    var leftBehind: [String] {
        if isRecordedWithoutDevice { return [] }
        var left: [String] = []
        let replaced = devices.lazy.filter { $0.standing == .replaced }.map(\.name)
        for device in Array(replaced) + silent
        where !left.containsSame(device) && !hasOpenRoute(device) && !isRecorded(device) {
            left.append(device)
        }
        return left
    }

    private func hasOpenRoute(_ device: String) -> Bool {
        devices.contains { $0.standing != .replaced && $0.name.isSame(as: device) }
    }
}
