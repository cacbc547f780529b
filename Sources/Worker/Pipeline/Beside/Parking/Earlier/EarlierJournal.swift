// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore

extension Journal {
    /// The journal of a record of `carillon.parked` from before journals: three lists, each with a part of it.
    ///
    /// - Parameters:
    ///   - done: the devices that ended.
    ///   - counts: of the ends, as `MarkCounts`; empty without statistics.
    ///   - trace: as `TraceBytes`; empty if the user was not traced.
    ///   - writtenMs: of the record, Unix ms.
    init(done: [String], counts: [UInt8], trace: [UInt8], writtenMs: Int64) {
        self.init()
        let mark = counts.withUnsafeBytes { bytes in
            var rest = bytes[...]
            return MarkCounts.take(&rest)
        }
        var outcomes = mark?.outcomes ?? []
        let told = trace.withUnsafeBytes { TraceRecord($0, kind: .message, id: "") }
        for device in told?.devices ?? [] {
            let short = device.device.map { MarkCounts.short($0) } ?? 0
            let kind = CountedOutcome.Kind(device.verdict)
            let place = outcomes.firstIndex { $0.device == short && $0.kind == kind }
            append(Entry(device, place.map { outcomes.remove(at: $0) }, isResumed: told?.isResumed ?? false))
        }
        for outcome in outcomes {
            let known = endedDevices
            let device = done.first { MarkCounts.short($0) == outcome.device && !known.containsSame($0) }
            let entry = mark.flatMap { Entry($0.counted(outcome), device: device, nowMs: writtenMs) }
            if let entry { append(entry) }
        }
        for device in done where !endedDevices.containsSame(device) {
            append(Entry(unrecorded: device, .suppressed, atMs: writtenMs))
        }
    }
}

extension Journal.Entry {
    /// - Parameter counted: the same end, as it counts.
    fileprivate init(_ told: TraceRecord.Device, _ counted: MarkCounts.Outcome?, isResumed: Bool) {
        var traits = Traits.isTraced
        if isResumed { traits.insert(.isResumed) }
        if counted != nil { traits.insert(.counts) }
        self.init(
            device: told.device, verdict: told.verdict, reason: told.reason, atMs: told.atMs, pushID: told.pushID,
            badge: told.badge, status: Int32(truncatingIfNeeded: told.status ?? 0),
            attempts: Int32(truncatingIfNeeded: told.attempts), latencyMs: told.latencyMs,
            countedReason: counted?.reason ?? 0, credential: counted?.credential ?? 0, traits: traits)
    }
}
