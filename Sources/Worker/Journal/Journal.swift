// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import PushCore

/// The list of all that was done for one recipient of an event: the ends of its devices and its waits, in their order. It only grows.
///
/// A recipient has one journal. It is in memory; while the recipient waits in `carillon.parked`, in its record there
/// (`OpenRecipients`); and at the recipient's end in its mark (`FinishedMark`). The results say the same to others, the trace
/// shows it to people, and the statistics count it once, at the recipient's end.
struct Journal: Sendable, Equatable {
    private(set) var entries: [Entry] = []

    /// The end of a device, or of the recipient as a whole; with the verdict `parked`, a wait.
    struct Entry: Sendable, Equatable {
        /// Nil: the recipient as a whole, or a device that another try knew.
        let device: String?
        let verdict: Verdict
        /// A `Reason`, a `TraceWait`, or APNs' own word.
        let reason: String
        /// Unix ms.
        let atMs: Int64
        let pushID: PushID?
        let badge: Int64?
        /// APNs' HTTP status; 0: none.
        let status: Int32
        let attempts: Int32
        /// From the original record's Kafka time to the outcome.
        let latencyMs: Int64
        /// Of `CountedReason`.
        let countedReason: UInt8
        /// `MarkCounts.short` of the name of the push's credential set; 0: none.
        let credential: UInt8
        let traits: Traits

        /// Independent facts. The bits are a stored format: never change or reuse one.
        struct Traits: OptionSet, Sendable, Equatable {
            let rawValue: UInt8
            /// The statistics count it.
            static let counts = Traits(rawValue: 1 << 0)
            /// The trace shows it.
            static let isTraced = Traits(rawValue: 1 << 1)
            /// An earlier try had begun the recipient and not finished it.
            static let isResumed = Traits(rawValue: 1 << 2)
            /// `badge: none`: the extension on the device added 1 for this alert.
            static let isAddedByClient = Traits(rawValue: 1 << 3)
        }

        init(
            device: String? = nil, verdict: Verdict, reason: String, atMs: Int64, pushID: PushID? = nil,
            badge: Int64? = nil, status: Int32 = 0, attempts: Int32 = 0, latencyMs: Int64 = 0, countedReason: UInt8 = 0,
            credential: UInt8 = 0, traits: Traits = []
        ) {
            self.device = device
            self.verdict = verdict
            self.reason = reason
            self.atMs = atMs
            self.pushID = pushID
            self.badge = badge
            self.status = status
            self.attempts = attempts
            self.latencyMs = latencyMs
            self.countedReason = countedReason
            self.credential = credential
            self.traits = traits
        }

        var isWait: Bool { verdict == .parked }
        /// APNs had the push.
        var isSent: Bool { attempts > 0 || verdict == .accepted }
        /// `MarkCounts.short` of the device; 0: none.
        var shortDevice: UInt8 { device.map { MarkCounts.short($0) } ?? 0 }
    }

    var isEmpty: Bool { entries.isEmpty }
    var ends: some Sequence<Entry> { entries.lazy.filter { !$0.isWait } }

    /// Visits the entries from a place on, where they are: a copy of one counts its references.
    func forEach(from start: Int = 0, _ body: (UnsafePointer<Entry>) -> Void) {
        entries.withUnsafeBufferPointer { entries in
            guard let first = entries.baseAddress else { return }
            for index in start..<max(start, entries.count) { body(first + index) }
        }
    }

    /// The devices that ended.
    var endedDevices: [String] {
        entries.reduce(into: []) { devices, entry in
            if let device = entry.device, !entry.isWait, !devices.containsSame(device) { devices.append(device) }
        }
    }

    /// Whether the mark must say on which device the extension added 1.
    var hasAddedByClient: Bool { entries.indices.contains { entries[$0].traits.contains(.isAddedByClient) } }

    /// The place of the trace's first entry; nil: nothing is traced. Of users outside the sample the trace begins with a failure,
    /// which is rare and asked about most.
    ///
    /// - Parameter isSampled: `TracePlan.covers`.
    func traceStart(isSampled: Bool) -> Int? {
        entries.indices.first { place in
            entries[place].traits.contains(.isTraced) && (isSampled || TracePlan.isFailure(entries[place].verdict))
        }
    }

    mutating func append(_ entry: consuming Entry) { entries.append(entry) }

    /// Removes the waits where nothing ended: a record has no room for them.
    mutating func leaveOutWaits() {
        if entries.allSatisfy(\.isWait) { entries = [] }
    }
}

extension Journal.Entry {
    /// The device needs nothing more, and no record says so.
    init(unrecorded device: String, _ verdict: Verdict, atMs: Int64) {
        self.init(device: device, verdict: verdict, reason: "", atMs: atMs)
    }

    /// An outcome that another try of the same record counted.
    ///
    /// - Parameter counted: with `MarkCounts.short` of the credential in place of its number.
    init?(_ counted: CountedOutcome, device: String? = nil, nowMs: Int64) {
        guard let verdict = Verdict(counted.kind) else { return nil }
        self.init(
            device: device, verdict: verdict, reason: CountedReason.label(counted.reason),
            atMs: counted.hour(now: nowMs / StatisticsKey.hourMs) * StatisticsKey.hourMs,
            attempts: counted.isSent ? 1 : 0, countedReason: counted.reason, credential: counted.credential,
            traits: .counts)
    }
}

extension Verdict {
    /// Nil for the reports of devices.
    fileprivate init?(_ kind: CountedOutcome.Kind) {
        switch kind {
        case .accepted: self = .accepted
        case .rejected: self = .rejected
        case .expired: self = .expired
        case .suppressed: self = .suppressed
        case .online: self = .online
        case .arrived, .opened: return nil
        }
    }

    /// The letter of a verdict in stored forms: never change or reuse one.
    var letter: UInt8 {
        switch self {
        case .accepted: UInt8(ascii: "a")
        case .rejected: UInt8(ascii: "r")
        case .expired: UInt8(ascii: "e")
        case .suppressed: UInt8(ascii: "s")
        case .online: UInt8(ascii: "o")
        case .parked: UInt8(ascii: "p")
        }
    }

    init?(letter: UInt8) {
        guard let verdict = Self.allCases.first(where: { $0.letter == letter }) else { return nil }
        self = verdict
    }
}
