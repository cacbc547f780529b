// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore

/// What one flush adds to Redis: the arguments of `StatisticsScripts.count`.
struct StatisticsFlush {
    /// Rises with each flush of an owner.
    var number: UInt64
    /// By partition, as text.
    var positions: [(partition: String, position: String)]
    private(set) var keys: [String] = []
    private(set) var steps: [String] = []
    private let days: Int
    private let nowMs: Int64
    private let credentials: [String]

    /// The letters of the numbers in Redis.
    enum Letter: String, CaseIterable {
        case sent = "s"
        case accepted = "a"
        case acceptedAlerts = "A"
        case rejected = "r"
        case expired = "e"
        case suppressed = "x"
        case online = "o"
        case arrived = "v"
        case opened = "w"
        case uncheckedArrived = "V"
        case uncheckedOpened = "W"
    }

    private struct Place: Hashable {
        var app: String
        var time: Int64
    }

    private struct Named: Hashable {
        var place: Place
        var hash: UInt32
    }

    /// Ordered by their first use, so that equal counts make equal commands.
    private struct Sums<Key: Hashable> {
        private(set) var all: [(key: Key, text: String, fields: [String: UInt64])] = []
        private var indices: [Key: Int] = [:]

        mutating func add(_ count: UInt64, _ fields: [String], _ key: Key, text: String = "") {
            let index = indices[key] ?? all.count
            if index == all.count {
                indices[key] = index
                all.append((key, text, [:]))
            }
            if all[index].text.isEmpty { all[index].text = text }
            for field in fields { all[index].fields[field, default: 0] &+= count }
        }
    }

    /// - Parameters:
    ///   - days: how long the numbers live.
    ///   - credentials: by their number in `CountedOutcome`.
    init(
        _ rows: [CountTable.Row], number: UInt64, positions: [(partition: String, position: String)], days: Int,
        nowMs: Int64, credentials: [String]
    ) {
        self.number = number
        self.positions = positions
        self.days = days
        self.nowMs = nowMs
        self.credentials = credentials
        var hours = Sums<Place>()
        var names = Sums<Named>()
        var tasks = Sums<Named>()
        let now = nowMs / StatisticsKey.hourMs
        for row in rows {
            let (subject, outcome) = (row.subject, row.outcome)
            let letters = Self.letters(outcome)
            let hour = Place(app: subject.app, time: outcome.hour(now: now))
            hours.add(row.count, fields(outcome, letters), hour)
            if !Self.hasSubject(outcome) { continue }
            names.add(row.count, letters, Named(place: hour, hash: subject.name), text: subject.nameText)
            if subject.task == 0 { continue }
            let day = Place(app: subject.app, time: hour.time / 24)
            tasks.add(row.count, letters, Named(place: day, hash: subject.task), text: subject.taskText)
        }
        for (place, _, sums) in hours.all { write(place, sums) }
        for (named, text, sums) in names.all { write(name: named, text, sums) }
        for (named, text, sums) in tasks.all { write(task: named, text, sums) }
    }

    // MARK: The fields of an outcome

    static func letters(_ outcome: CountedOutcome) -> [String] {
        let isAlert = outcome.push == .alert
        let letters: [Letter] =
            switch outcome.kind {
            case .accepted: isAlert ? [.sent, .accepted, .acceptedAlerts] : [.sent, .accepted]
            case .rejected: outcome.isSent ? [.sent, .rejected] : [.rejected]
            case .expired: outcome.isSent ? [.sent, .expired] : [.expired]
            case .suppressed: outcome.isSent ? [.sent, .suppressed] : [.suppressed]
            case .online: outcome.isSent ? [.sent, .online] : [.online]
            case .arrived: outcome.isSent ? [.arrived] : [.uncheckedArrived]
            case .opened: outcome.isSent ? [.opened] : [.uncheckedOpened]
            }
        return letters.map(\.rawValue)
    }

    /// Nothing is known of the push of an unchecked report.
    private static func hasSubject(_ outcome: CountedOutcome) -> Bool {
        switch outcome.kind {
        case .arrived, .opened: outcome.isSent
        case .accepted, .rejected, .expired, .suppressed, .online: true
        }
    }

    private func fields(_ outcome: CountedOutcome, _ letters: [String]) -> [String] {
        var fields = letters.map { ".\($0)" }
        guard Self.hasSubject(outcome) else { return fields }
        let credential = Int(outcome.credential)
        var dimensions = ["p" + outcome.push.name, "l\(outcome.lane.name)"]
        if credential > 0, credential <= credentials.count { dimensions.append("c" + credentials[credential - 1]) }
        for dimension in dimensions { fields += letters.map { "\(dimension):\($0)" } }
        switch outcome.kind {
        case .arrived, .opened: break
        default: fields.append("r\(outcome.kind.letter):\(CountedReason.label(outcome.reason))")
        }
        return fields
    }

    // MARK: Steps

    private mutating func key(_ key: String) -> String {
        if let index = keys.lastIndex(of: key) { return String(index + 3) }
        keys.append(key)
        return String(keys.count + 2)
    }

    /// Until `days` after the end of the hour or day.
    private func seconds(_ endMs: Int64) -> String {
        let left = (endMs - nowMs) / 1000 + Int64(days) * 86_400
        return String(max(60, left))
    }

    private mutating func write(_ place: Place, _ sums: [String: UInt64]) {
        steps += [
            "h", key(StatisticsKey.hour(place.app, place.time)), seconds((place.time + 1) * StatisticsKey.hourMs),
        ]
        write(sums)
    }

    private mutating func write(name: Named, _ text: String, _ sums: [String: UInt64]) {
        let (app, hour) = (name.place.app, name.place.time)
        let day = hour / 24
        steps += ["n", key(StatisticsKey.hour(app, hour)), key(StatisticsKey.names(app, day))]
        steps += [seconds((day + 1) * 24 * StatisticsKey.hourMs), String(name.hash), name.hash == 0 ? "-" : text]
        write(sums)
    }

    private mutating func write(task: Named, _ text: String, _ sums: [String: UInt64]) {
        let (app, day) = (task.place.app, task.place.time)
        steps += ["t", key(StatisticsKey.tasks(app, day)), key(StatisticsKey.taskList(app, day))]
        steps += [seconds((day + 1) * 24 * StatisticsKey.hourMs), String(task.hash), text]
        write(sums)
    }

    private mutating func write(_ sums: [String: UInt64]) {
        steps.append(String(sums.count))
        for (field, count) in sums.sorted(by: { $0.key < $1.key }) { steps += [field, String(count)] }
    }
}
