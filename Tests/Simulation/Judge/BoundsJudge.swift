// SPDX-License-Identifier: Apache-2.0
/// The bounds that the configuration states, while a world runs.
struct BoundsJudge {
    var windowRecords: Int
    var partitions: Int
    /// `limits.in_flight` of all apps.
    var inFlight: Int
    private(set) var violations: [Violation] = []
    /// The greatest count of each part.
    private(set) var most: [String: Int] = [:]
    /// Records of one poll: a shard takes them before it sees that the window is full.
    private static let poll = 64
    /// The user-state records that are applied at one time.
    private static let changes = 2_000
    private static let recipients = 20_000
    /// Counted by a worker that meets one; a debug build stops there.
    static let impossible = "states that cannot be"
    /// Bytes that a worker writes in one turn: a turn's share.
    static let turnBytes = 1 << 20

    init(_ plan: Plan) {
        windowRecords = plan.windowRecords
        partitions = Int(plan.partitions)
        inFlight = plan.allApps.reduce(0) { $0 + $1.inFlight }
    }

    mutating func look(_ worker: String, _ parts: [(part: String, count: Int)]) {
        for (part, count) in parts {
            most[part] = max(most[part] ?? 0, count)
            guard let bound = bound(of: part), count > bound else { continue }
            found("\(worker) holds \(count) \(part), and may hold \(bound)")
        }
    }

    mutating func didTurn(_ name: String, bytes: Int) {
        most["bytes of a turn"] = max(most["bytes of a turn"] ?? 0, bytes)
        if bytes > Self.turnBytes { found("\(name) wrote \(bytes) bytes in one turn") }
    }

    private mutating func found(_ text: String) {
        guard violations.count < 5 else { return }
        violations.append(Violation(rule: "bounds", text: text, message: ""))
    }

    private func bound(of part: String) -> Int? {
        // Of each of the three consumers, and chunks and parked work beside events and user state.
        let unsettled = 4 * partitions * (windowRecords + Self.poll)
        switch part {
        case "events", "unsettled records": return unsettled
        case "recipients", "dedup keys": return Self.recipients
        case "user-state records": return Self.changes
        case Self.impossible: return 0
        case "pushes on streams": return inFlight
        default: return nil
        }
    }
}
