// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore

/// What happens to each device of a recipient by the present decision, and whether the recipient is recorded without a device:
/// one verdict per device, or one without device, never both (contract section 3).
///
/// The first round, a later one, the first after a crash and the return from the topic are this one call, for the worker and for
/// `explain`. When a push goes (queue, rate, burst, behind parked work) is the worker's matter.
struct Plan {
    /// The decision, with a route without a way for each device that needs an end and has no other route.
    private(set) var decision: Decision
    /// Devices that have the message: their routes end at once.
    let acknowledged: [String]
    /// Accepted pushes that are recorded again, because their records may be missing.
    private(set) var repeated: [EarlierPush] = []
    /// The reason of the one record without a device; nil if every device has a record of its own, or if it is written.
    private(set) var withoutDevice: Reason?
    /// The user has no token, and devices have verdicts of their own: an SMS follows where none of them was reached.
    private(set) var isUnreached = false
    /// The places, in `Progress.devices`, of routes that end for `reasonOfLostRoute`.
    private(set) var ended: [Int] = []
    /// The routes that begin.
    private(set) var routes: [Route]
    /// Devices that end without a route.
    private(set) var lost: [(device: String, reason: Reason)] = []

    /// The plan where nothing was done before: the same as with `Progress()`, at less cost.
    init(first decision: Decision) {
        self.decision = decision
        acknowledged = []
        routes = decision.routes
        withoutDevice = decision.finalReason
    }

    /// - Parameters:
    ///   - decision: after the claim, without alerts for a read or revoked message.
    ///   - allowed: the devices that have a route where an alert is allowed.
    init(_ decision: Decision, _ progress: Progress, allowed: @autoclosure () -> [String]) {
        self.decision = decision
        acknowledged = progress.acknowledged
        routes = []
        if !progress.hasParkedDevices { repeatRecord(progress.earlierTry?.withoutDevice) }
        let hasVerdicts = addEnds(progress, allowed)
        if progress.desktopHasIt { keepPhonesWaiting(progress.returned) }
        repeatAccepted(progress)
        planRecordWithoutDevice(progress, hasVerdicts: hasVerdicts)
        endRoutes(progress)
        routes = progress.isUntouched ? self.decision.routes : self.decision.routes.filter { Self.begins($0, progress) }
        endDevicesWithoutRoute(progress)
    }

    /// An alert was denied because the message expired: nothing is sent any more.
    private var isExpired: Bool { decision.alert == .deny(.expired) }

    private var deny: Reason? {
        if case .deny(let reason) = decision.alert { return reason }
        return nil
    }

    /// Why a device that had a token has no route any more: the deny, or its token moved.
    var reasonOfLostRoute: Reason { deny ?? .tokenMoved }

    // MARK: Steps

    /// An earlier try recorded the recipient without a device, or was about to, and so does this one. Live devices still get the
    /// message.
    private mutating func repeatRecord(_ reason: Reason?) {
        guard let reason, decision.finalReason == nil else { return }
        decision.alert = .deny(reason)
        decision.routes = decision.routes.compactMap { route in
            let way = route.way.withoutAlert(reason)
            if case .connection = way { return Route(device: route.device, way: way) }
            return nil
        }
    }

    /// Adds a route without a way for each device of an earlier try or round that has no route now.
    ///
    /// - Returns: whether some device has a verdict from there.
    private mutating func addEnds(_ progress: Progress, _ allowed: () -> [String]) -> Bool {
        let addressed = (progress.earlierTry?.addressed ?? []).filter { !progress.recorded.containsSame($0) }
        let acknowledged = progress.acknowledged.filter { !progress.isRecorded($0) && !progress.keepsRoute($0) }
        let wasPushed = progress.earlierTry != nil && !progress.accepted.isEmpty
        let hasVerdicts = wasPushed || !addressed.isEmpty || !acknowledged.isEmpty
        guard hasVerdicts || progress.mayHaveRecords else { return false }
        let reason = deny == nil ? Reason.noToken : decision.finalReason ?? .noToken
        for device in acknowledged + addressed + (deny == nil ? [] : allowed())
        where !decision.hasRoute(to: device) && !progress.accepted.containsSame(device) {
            decision.routes.append(Route(device: device, way: .none(reason)))
        }
        return hasVerdicts || !decision.routes.isEmpty
    }

    /// Phones that came back from the topic are not pushed where a desktop acknowledged while they were there.
    private mutating func keepPhonesWaiting(_ returned: [String]) {
        for index in decision.routes.indices where returned.containsSame(decision.routes[index].device) {
            if case .apns = decision.routes[index].way { decision.routes[index].way = .none(.desktopOnline) }
        }
    }

    private mutating func repeatAccepted(_ progress: Progress) {
        for push in progress.accepted
        where !progress.keepsRoute(push.device) && !progress.recorded.containsSame(push.device)
            && !repeated.containsSame(push.device)
        {
            repeated.append(push)
        }
    }

    /// A deny of steps 2-9, or `no_token`: one record for the recipient, once, unless devices have records of their own.
    private mutating func planRecordWithoutDevice(_ progress: Progress, hasVerdicts: Bool) {
        guard let reason = decision.finalReason, !progress.isRecordedWithoutDevice else { return }
        if hasVerdicts || progress.hasDeviceVerdicts(reason) {
            isUnreached = reason == .noToken
        } else {
            withoutDevice = reason
        }
    }

    private mutating func endRoutes(_ progress: Progress) {
        for place in progress.devices.indices {
            let device = progress.devices[place]
            // Another worker may have pushed it since.
            let hasOther = decision.hasRoute(to: device.name) || progress.accepted.containsSame(device.name)
            let ends =
                switch device.standing {
                case .replaced, .settled: false
                case .pending: isExpired
                case .queued: deny != nil
                case .waiting: isExpired && !hasOther
                case .rebound: !hasOther
                }
            if ends { ended.append(place) }
        }
    }

    private static func begins(_ route: Route, _ progress: Progress) -> Bool {
        if let token = route.pushedToken, progress.pushedTokens.contains(token) { return false }
        return !progress.keepsRoute(route.device) && !progress.isRecorded(route.device)
    }

    /// Ends returned devices that have no route any more, and with the message's expiry those that earlier rounds left behind.
    private mutating func endDevicesWithoutRoute(_ progress: Progress) {
        for device in progress.returned where !hasVerdict(device, progress) {
            // A silent connection may never have had a token.
            let isSilent = reasonOfLostRoute == .tokenMoved && progress.silent.containsSame(device)
            lost.append((device, isSilent ? .noToken : reasonOfLostRoute))
        }
        if !isExpired || withoutDevice != nil { return }
        for device in progress.leftBehind where !hasVerdict(device, progress) { lost.append((device, .expired)) }
    }

    private func hasVerdict(_ device: String, _ progress: Progress) -> Bool {
        routes.contains { $0.device.isSame(as: device) } || lost.contains { $0.device.isSame(as: device) }
            || ended.contains { progress.devices[$0].name.isSame(as: device) }
            || progress.keepsRoute(device) || progress.isRecorded(device)
    }
}
