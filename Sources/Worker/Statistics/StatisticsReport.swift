// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON

/// Numbers of one kind of outcomes: of an hour, a credential, a task and so on.
public struct StatisticsNumbers: Sendable, Equatable {
    /// Pushes with a request to APNs.
    public var sent: Int64 = 0
    public var accepted: Int64 = 0
    /// Accepted pushes that show an alert.
    public var alerts: Int64 = 0
    public var rejected: Int64 = 0
    public var expired: Int64 = 0
    public var suppressed: Int64 = 0
    /// By long connection.
    public var online: Int64 = 0
    /// Alerts that their devices reported, the first report of each.
    public var arrived: Int64 = 0
    public var opened: Int64 = 0
    /// Reports that no accepted alert is known of.
    public var uncheckedArrived: Int64 = 0
    public var uncheckedOpened: Int64 = 0

    public init() {}

    /// Between 0 and 1; nil without an accepted alert.
    public var arrivalRate: Double? { rate(arrived) }
    public var openRate: Double? { rate(opened) }

    private func rate(_ reported: Int64) -> Double? {
        // A report may be counted some seconds before its push.
        alerts > 0 ? min(1, Double(reported) / Double(alerts)) : nil
    }

    /// The names in JSON and CSV, in their order.
    public static let columns: [(name: StaticString, number: any KeyPath<StatisticsNumbers, Int64> & Sendable)] = [
        ("sent", \.sent), ("accepted", \.accepted), ("alerts", \.alerts), ("rejected", \.rejected),
        ("expired", \.expired), ("suppressed", \.suppressed), ("online", \.online), ("arrived", \.arrived),
        ("opened", \.opened), ("unchecked_arrived", \.uncheckedArrived), ("unchecked_opened", \.uncheckedOpened),
    ]

    mutating func add(_ count: Int64, _ letter: StatisticsFlush.Letter) {
        switch letter {
        case .sent: sent &+= count
        case .accepted: accepted &+= count
        case .acceptedAlerts: alerts &+= count
        case .rejected: rejected &+= count
        case .expired: expired &+= count
        case .suppressed: suppressed &+= count
        case .online: online &+= count
        case .arrived: arrived &+= count
        case .opened: opened &+= count
        case .uncheckedArrived: uncheckedArrived &+= count
        case .uncheckedOpened: uncheckedOpened &+= count
        }
    }

    public static func + (left: StatisticsNumbers, right: StatisticsNumbers) -> StatisticsNumbers {
        var sum = left
        sum.sent &+= right.sent
        sum.accepted &+= right.accepted
        sum.alerts &+= right.alerts
        sum.rejected &+= right.rejected
        sum.expired &+= right.expired
        sum.suppressed &+= right.suppressed
        sum.online &+= right.online
        sum.arrived &+= right.arrived
        sum.opened &+= right.opened
        sum.uncheckedArrived &+= right.uncheckedArrived
        sum.uncheckedOpened &+= right.uncheckedOpened
        return sum
    }
}

/// The statistics of one app in a range of hours, as Redis has them.
public struct StatisticsReport: Sendable, Equatable {
    public let app: String
    /// Whole hours, Unix ms; the end is not included.
    public let fromMs: Int64
    public let toMs: Int64
    public private(set) var total = StatisticsNumbers()
    /// Those with numbers, by their start, Unix ms.
    public private(set) var hours: [Int64: StatisticsNumbers] = [:]
    public private(set) var reasons: [Reason: Int64] = [:]
    public private(set) var credentials: [String: StatisticsNumbers] = [:]
    public private(set) var pushTypes: [String: StatisticsNumbers] = [:]
    public private(set) var lanes: [String: StatisticsNumbers] = [:]
    /// By template or `type_name`; `-` has neither, `other` adds up those beyond the first 200 of a day.
    public private(set) var templates: [String: StatisticsNumbers] = [:]
    /// Of whole days.
    public private(set) var tasks: [String: StatisticsNumbers] = [:]

    public struct Reason: Sendable, Hashable, Comparable {
        public let verdict: String
        public let reason: String

        public static func < (left: Reason, right: Reason) -> Bool {
            (left.verdict, left.reason) < (right.verdict, right.reason)
        }
    }

    init(app: String, hours: Range<Int64>) {
        self.app = app
        fromMs = hours.lowerBound * StatisticsKey.hourMs
        toMs = hours.upperBound * StatisticsKey.hourMs
    }

    /// By UTC day, its start in Unix ms.
    public var days: [Int64: StatisticsNumbers] {
        var days: [Int64: StatisticsNumbers] = [:]
        for (hour, numbers) in hours {
            let day = hour.flooringDivision(by: 86_400_000) * 86_400_000
            days[day] = (days[day] ?? StatisticsNumbers()) + numbers
        }
        return days
    }

    // MARK: Reading

    /// Adds a field of an hour's hash.
    ///
    /// - Parameter names: of that day, by hash.
    mutating func add(_ field: String, _ count: Int64, hour: Int64, names: [String: String]) {
        guard let first = field.first, let colon = field.lastIndex(of: ":") ?? field.indices.first else { return }
        let last = String(field[field.index(after: colon)...])
        let middle = colon > field.startIndex ? String(field[field.index(after: field.startIndex)..<colon]) : ""
        if first == "r" {
            let kind = CountedOutcome.Kind.allCases.first { $0.letter == middle }
            if let kind { reasons[Reason(verdict: kind.word, reason: last), default: 0] &+= count }
            return
        }
        guard let letter = StatisticsFlush.Letter(rawValue: last) else { return }
        switch first {
        case ".":
            total.add(count, letter)
            hours[hour * StatisticsKey.hourMs, default: StatisticsNumbers()].add(count, letter)
        case "c": credentials[middle, default: StatisticsNumbers()].add(count, letter)
        case "p": pushTypes[middle, default: StatisticsNumbers()].add(count, letter)
        case "l": lanes[middle, default: StatisticsNumbers()].add(count, letter)
        case "n": templates[names[middle] ?? "other", default: StatisticsNumbers()].add(count, letter)
        default: break
        }
    }

    /// Adds the hash of a day's tasks.
    mutating func add(tasks fields: [String: String]) {
        for (field, value) in fields {
            guard let colon = field.lastIndex(of: ":"), let count = Int64(value),
                let letter = StatisticsFlush.Letter(rawValue: String(field[field.index(after: colon)...])),
                let name = fields["\(field[..<colon]):t"]
            else { continue }
            tasks[name, default: StatisticsNumbers()].add(count, letter)
        }
    }
}

// MARK: - JSON

extension StatisticsReport {
    /// As `GET /stats` has it.
    public var json: String {
        var writer = JSONWriter(reservingCapacity: 4096)
        write(to: &writer)
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("app", app)
        writer.member("from_ms", fromMs)
        writer.member("to_ms", toMs)
        writer.key("total")
        total.write(to: &writer)
        list("hours", hours, &writer) { $0.member("at_ms", $1) }
        list("days", days, &writer) { $0.member("at_ms", $1) }
        writer.key("reasons")
        writer.beginArray()
        for (reason, count) in reasons.sorted(by: { $0.key < $1.key }) {
            writer.beginObject()
            writer.member("verdict", reason.verdict)
            writer.member("reason", reason.reason)
            writer.member("count", count)
            writer.endObject()
        }
        writer.endArray()
        list("credentials", credentials, &writer) { $0.member("credential", $1) }
        list("push_types", pushTypes, &writer) { $0.member("push_type", $1) }
        list("lanes", lanes, &writer) { $0.member("lane", $1) }
        list("templates", templates, &writer) { $0.member("template", $1) }
        list("tasks", tasks, &writer) { $0.member("task_id", $1) }
        writer.endObject()
    }

    private func list<Key: Comparable>(
        _ name: StaticString, _ rows: [Key: StatisticsNumbers], _ writer: inout JSONWriter,
        _ key: (inout JSONWriter, Key) -> Void
    ) {
        writer.key(name)
        writer.beginArray()
        for (row, numbers) in rows.sorted(by: { $0.key < $1.key }) {
            writer.beginObject()
            key(&writer, row)
            numbers.writeMembers(to: &writer)
            writer.endObject()
        }
        writer.endArray()
    }
}

extension StatisticsNumbers {
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writeMembers(to: &writer)
        writer.endObject()
    }

    func writeMembers(to writer: inout JSONWriter) {
        for (name, number) in Self.columns { writer.member(name, self[keyPath: number]) }
        for (name, rate) in [("arrival_rate", arrivalRate), ("open_rate", openRate)] as [(StaticString, Double?)] {
            guard let rate else { continue }
            writer.key(name)
            writer.double(rate)
        }
    }

    /// With four decimals.
    public static func text(_ rate: Double) -> String {
        let units = Int((rate * 10_000).rounded())
        let digits = String(units % 10_000)
        return "\(units / 10_000)." + String(repeating: "0", count: 4 - digits.count) + digits
    }
}
