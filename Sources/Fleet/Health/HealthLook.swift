// SPDX-License-Identifier: Apache-2.0
/// Which rules hold for one worker, from looks at its metrics some minutes apart.
public struct HealthLook {
    private let window: Window
    /// The growth of the last half minute. It shows the present answers of APNs.
    private let recent: Window?
    private let page: MetricsPage
    private let wallSeconds: Double
    /// The least numbers of the rules count. Without them the last half minute shows whether a rule still holds.
    private let hasMinima: Bool
    private let live: Live?

    /// The rules over the last half minute alone. A class, since a look holds another one.
    private final class Live {
        let look: HealthLook
        init(_ look: HealthLook) { self.look = look }
    }

    /// The growth of the counters since an earlier look.
    private struct Window {
        let rates: FleetRates
        let seconds: Double

        init(_ now: WorkerLook, after before: WorkerLook?) {
            let earlier = before.map { [$0.address: $0] } ?? [:]
            rates = FleetRates([now], earlier)
            seconds = rates.longestSeconds ?? 0
        }

        func growth(_ name: String, by labels: [String]) -> [(labels: [String], count: Double)] {
            rates.rates(name, by: labels).map { ($0.labels, ($0.rate * seconds).rounded()) }.filter { $0.count > 0 }
        }

        var inTime: String { "in the last \(FigureText.duration(seconds))" }
    }

    /// The metrics that it reads.
    public static let metrics: Set<String> = [
        FleetMetrics.attempts, FleetMetrics.decisions, FleetMetrics.deadLetters, FleetMetrics.consumed,
        FleetMetrics.redisSeconds, FleetMetrics.started, FleetMetrics.lagSeconds, FleetMetrics.watermarkAge,
        FleetMetrics.pendingEvents, FleetMetrics.credentialEnd, FleetMetrics.lostLogLines, FleetMetrics.alarms,
        FleetMetrics.retries, FleetMetrics.retriesDenied, FleetMetrics.commits, FleetMetrics.gap, FleetMetrics.series,
        FleetMetrics.openFiles, FleetMetrics.openFilesMax,
    ]

    /// - Parameters:
    ///   - before: the earlier look; nil where there is none, and only present values count.
    ///   - recent: a look of half a minute ago.
    public init(_ now: WorkerLook, after before: WorkerLook?, recent: WorkerLook? = nil, wallSeconds: Double) {
        self.init(now, after: before, recent: recent, wallSeconds: wallSeconds, hasMinima: true)
    }

    private init(
        _ now: WorkerLook, after before: WorkerLook?, recent: WorkerLook?, wallSeconds: Double, hasMinima: Bool
    ) {
        window = Window(now, after: before)
        self.recent = recent.map { Window(now, after: $0) }
        page = now.metrics ?? MetricsPage([])
        self.wallSeconds = wallSeconds
        self.hasMinima = hasMinima
        live = recent.map {
            Live(HealthLook(now, after: $0, recent: nil, wallSeconds: wallSeconds, hasMinima: false))
        }
    }

    public var notes: [HealthNote] { apps + events + kafka + redis + system }

    /// Whether a note's rule still holds in the last half minute; nil if nothing there shows it.
    public func isLive(_ note: HealthNote) -> Bool? {
        guard let look = live?.look else { return nil }
        if look.notes.contains(where: { $0.isSameCondition(as: note) }) { return true }
        return look.shows(note) ? false : nil
    }

    /// Whether the figures of a note's rule exist in the window: without a push nothing shows that APNs accepts them again.
    private func shows(_ note: HealthNote) -> Bool {
        switch note.rule {
        case .notAccepted, .nothingAccepted, .unanswered:
            guard case .app(let app, let environment) = note.subject else { return false }
            return growth(FleetMetrics.attempts, by: ["app", "env"]).contains { $0.labels == [app, environment] }
        case .commits: return !growth(FleetMetrics.commits, by: ["result"]).isEmpty
        case .slowRedis: return window.rates.spread(FleetMetrics.redisSeconds) != nil
        default: return true
        }
    }

    private func least(_ count: Double) -> Double { hasMinima ? count : 1 }

    private func growth(_ name: String, by labels: [String]) -> [(labels: [String], count: Double)] {
        window.growth(name, by: labels)
    }

    private func growth(_ name: String) -> Double { growth(name, by: []).first?.count ?? 0 }

    private func highest(_ name: String) -> Double { page.series(name).map(\.value).max() ?? 0 }

    private var inTime: String { window.inTime }

    // MARK: - Apps

    private var apps: [HealthNote] {
        // The note of a present fault has the present figures.
        let now = recent.map { answers(in: $0) } ?? []
        let earlier = answers(in: window).filter { note in
            !now.contains { $0.subject == note.subject && $0.rule.figures == note.rule.figures }
        }
        var notes = now + earlier
        for (labels, _) in growth(FleetMetrics.alarms, by: ["app", "env", "reason"]) {
            notes.append(
                HealthNote(
                    .app(labels[0], environment: labels[1]), .misconfigured,
                    "APNs rejects pushes: \(labels[2]), which the configuration causes"))
        }
        for (labels, count) in growth(FleetMetrics.retriesDenied, by: ["app", "env"]) {
            notes.append(
                HealthNote(
                    .app(labels[0], environment: labels[1]), .noRetries,
                    "\(FigureText.counted(count, "push")) waited because too many need another try"))
        }
        return notes + certificates
    }

    /// The answers of APNs in that time.
    private func answers(in window: Window) -> [HealthNote] {
        var answers: [[String]: (all: Double, accepted: Double, unknown: Double)] = [:]
        for (labels, count) in window.growth(FleetMetrics.attempts, by: ["app", "env", "result"]) {
            var sum = answers[[labels[0], labels[1]]] ?? (0, 0, 0)
            sum.all += count
            if labels[2] == "accepted" { sum.accepted += count }
            if labels[2] == "ambiguous" { sum.unknown += count }
            answers[[labels[0], labels[1]]] = sum
        }
        let byName = answers.sorted { $0.key.lexicographicallyPrecedes($1.key) }
        return byName.flatMap { name, sum in
            self.answers(.app(name[0], environment: name[1]), name[0], sum, in: window)
        }
    }

    private func answers(
        _ subject: HealthNote.Subject, _ app: String, _ sum: (all: Double, accepted: Double, unknown: Double),
        in window: Window
    ) -> [HealthNote] {
        var notes: [HealthNote] = []
        let failed = sum.all - sum.accepted
        if sum.all >= least(HealthRule.answersMin), failed / sum.all > HealthRule.notAcceptedMax {
            let reason = mostFrequentRefusal(of: app, in: window)
            let most = reason.map { ", most by \($0)" } ?? ""
            let waitsForAPNs = sum.accepted == 0 || reason.map(Self.waitsForAPNs.contains) ?? false
            let share = sum.accepted == 0 ? "none" : "only \(FigureText.percent(sum.accepted / sum.all))"
            notes.append(
                HealthNote(
                    subject, waitsForAPNs ? .nothingAccepted : .notAccepted,
                    "APNs accepted \(share) of \(FigureText.counted(sum.all, "push")) \(window.inTime)\(most)"))
        }
        if sum.all >= least(HealthRule.unansweredMin), sum.unknown / sum.all > HealthRule.unansweredMax {
            let unknown = FigureText.number(sum.unknown)
            notes.append(
                HealthNote(
                    subject, .unanswered,
                    "\(unknown) of \(FigureText.counted(sum.all, "push")) had no answer \(window.inTime)"))
        }
        return notes
    }

    /// Reasons of parked pushes that APNs itself causes, and its answers after which a push is tried again. Other parked pushes
    /// only wait behind these, or for a limit of the app.
    private static let waitsForAPNs: Set = [
        "credential", "unavailable", "retry_after", "TooManyRequests", "InternalServerError", "ServiceUnavailable",
        "Shutdown",
    ]

    private func mostFrequentRefusal(of app: String, in window: Window) -> String? {
        let ended = window.growth(FleetMetrics.decisions, by: ["app", "reason", "verdict"]).filter { labels, _ in
            labels[2] == "rejected" || labels[2] == "parked" && Self.waitsForAPNs.contains(labels[1])
        }
        let triedAgain = window.growth(FleetMetrics.retries, by: ["app", "reason"]).filter { labels, _ in
            Self.waitsForAPNs.contains(labels[1])
        }
        return (ended + triedAgain).filter { $0.labels[0] == app }.max { $0.count < $1.count }?.labels[1]
    }

    /// They have no environment: an app's own one gets the note.
    private var certificates: [HealthNote] {
        page.series(FleetMetrics.credentialEnd).compactMap { series in
            let days = (series.value - wallSeconds) / 86_400
            guard days < HealthRule.daysMin, let app = series["app"] else { return nil }
            let name = series["credential"] ?? ""
            let words = days < 0 ? "has ended" : "ends in \(FigureText.counted(days.rounded(.down), "day"))"
            return HealthNote(
                .app(app, environment: ""), .certificate, "the certificate \(name) \(words)",
                alert: days < 2 ? "CarillonCredentialExpiring" : nil)
        }
    }

    // MARK: - Events

    private var events: [HealthNote] {
        var notes: [HealthNote] = []
        let letters = growth(FleetMetrics.deadLetters, by: ["reason"])
        let dead = letters.reduce(0) { $0 + $1.count }
        let read = max(growth(FleetMetrics.consumed), dead)
        if dead >= least(HealthRule.deadLettersMin), dead / read >= HealthRule.deadLettersMax {
            let most = letters.max { $0.count < $1.count }?.labels[0] ?? ""
            let share = "\(FigureText.number(dead)) of \(FigureText.counted(read, "record"))"
            notes.append(
                HealthNote(.events, .deadLetters, "\(share) became dead letters \(inTime), most by \(most)"))
        }
        let ended = growth(FleetMetrics.decisions, by: ["verdict"])
        let all = ended.reduce(0) { $0 + $1.count }
        let expired = ended.first { $0.labels[0] == "expired" }?.count ?? 0
        if expired >= least(HealthRule.expiredMin), expired / all >= HealthRule.expiredMax {
            let share = "\(FigureText.number(expired)) of \(FigureText.counted(all, "outcome"))"
            notes.append(
                HealthNote(.events, .expired, "\(share) were expired \(inTime): they came or were sent too late"))
        }
        let behind = highest(FleetMetrics.lagSeconds)
        if behind > HealthRule.behindSecondsMax {
            notes.append(
                HealthNote(
                    .events, .behind, "the oldest record that waits in Kafka is \(FigureText.duration(behind)) old"))
        }
        let oldest = highest(FleetMetrics.watermarkAge)
        if oldest > HealthRule.stuckSecondsMax, highest(FleetMetrics.pendingEvents) > 0 {
            notes.append(
                HealthNote(.events, .stuck, "the oldest unsettled record is \(FigureText.duration(oldest)) old"))
        }
        return notes
    }

    // MARK: - Servers

    private var kafka: [HealthNote] {
        var notes: [HealthNote] = []
        let commits = growth(FleetMetrics.commits, by: ["result"])
        let failed = commits.first { $0.labels[0] == "failed" }?.count ?? 0
        if failed > commits.first(where: { $0.labels[0] == "ok" })?.count ?? 0 {
            notes.append(
                HealthNote(.kafka, .commits, "\(FigureText.counted(failed, "commit")) of offsets failed \(inTime)"))
        }
        let lost = growth(FleetMetrics.gap)
        if lost > 0 {
            notes.append(
                HealthNote(
                    .kafka, .gap,
                    "Kafka deleted \(FigureText.counted(lost, "record")) before \(lost == 1 ? "it was" : "they were") read \(inTime)"
                ))
        }
        return notes
    }

    private var redis: [HealthNote] {
        guard let spread = window.rates.spread(FleetMetrics.redisSeconds), spread.p99 > HealthRule.redisSecondsMax
        else {
            return []
        }
        return [
            HealthNote(
                .redis, .slowRedis,
                "slow: 1 % of the replies took longer than \(FigureText.duration(spread.p99)) \(inTime)")
        ]
    }

    private var system: [HealthNote] {
        var notes: [HealthNote] = []
        let lost = growth(FleetMetrics.lostLogLines)
        if lost > 0 {
            notes.append(
                HealthNote(
                    .system, .logLost,
                    "\(FigureText.counted(lost, "log line")) \(lost == 1 ? "was" : "were") lost \(inTime)"))
        }
        let series = highest(FleetMetrics.series)
        if series > HealthRule.seriesMax {
            notes.append(HealthNote(.system, .series, "\(FigureText.number(series)) of 3000 time series are in use"))
        }
        let most = highest(FleetMetrics.openFilesMax)
        if most > 0, highest(FleetMetrics.openFiles) / most > HealthRule.descriptorsMax {
            let open = FigureText.percent(highest(FleetMetrics.openFiles) / most)
            notes.append(HealthNote(.system, .descriptors, "\(open) of the file descriptors are open"))
        }
        return notes
    }
}
