// SPDX-License-Identifier: Apache-2.0
/// The disturbances of `carillon bench --apns --disturb`. Each has figures with bars.
enum Disturbance: String, CaseIterable {
    case soak
    case goAway = "goaway"
    case badTokens = "bad-tokens"
    case frozen
    case far

    static let names = allCases.map(\.rawValue).joined(separator: ", ")

    /// Seconds from the simulator's start until one connection freezes.
    static let frozenAfterSeconds = 4
    static let goAwayEverySeconds = 5
    /// One push in this many goes to a token that APNs does not know.
    static let badEvery = 20
    /// The round trip of a distant simulator. The network, not the processors, then limits a connection: a 64 KB window
    /// holds about a hundred pushes.
    static let tripMs = 40
}

/// The scenario text that makes the simulator produce a disturbance.
enum DisturbanceScenario {
    static let goAway = "{\"goaway_every_s\": \(Disturbance.goAwayEverySeconds)}"
    static let goAwayAfar = "{\"goaway_every_s\": \(Disturbance.goAwayEverySeconds), \"connection\": {\(trip)}}"
    static let afar = "{\"connection\": {\(trip)}}"
    /// A rejection limits its connection to one stream until the next acceptance.
    static let badTokens = "{\"connection\": {\"shrink_on_rejection\": true}, \(rejections)}"
    static let badTokensAfar = "{\"connection\": {\(trip), \"shrink_on_rejection\": true}, \(rejections)}"
    /// The same rejections without the limit, to measure their own cost.
    static let badTokensUnshrunk = "{\(rejections)}"
    static let frozen = """
        {"rules": [{"match": {"after_s": \(Disturbance.frozenAfterSeconds), "count": 1}, "fault": {"kind": "freeze"}}]}
        """
    static let far = "{\"connection\": {\"rtt_ms\": 80, \"window\": 65535}}"

    private static let trip = "\"rtt_ms\": \(Disturbance.tripMs)"
    private static let rejections = """
        "rules": [{"match": {"token": "\(DisturbanceFeeder.badPrefix)"}, "answer": {"status": 400, "reason": "BadDeviceToken"}}]
        """
}

/// One load on one client.
struct LoadPlan: Sendable {
    var endpoint: String
    var credentials: String
    /// Process id of the simulator, for its CPU time.
    var simulator: Int32
    /// Ends after this many pushes, or after `seconds`.
    var pushes = Int.max
    var seconds = Double.infinity
    /// Measuring starts after this time, which the limiter and the pool need to adapt.
    var warmSeconds = 2.0
    /// Pushes per second at an even pace; nil for full speed.
    var perSecond: Int?
    /// One push in this many goes to a token that APNs does not know.
    var badEvery: Int?
    /// Rejections come only in every second stretch of this many seconds; nil for all the time.
    var badStretches: Double?
    /// Marks these pushes as sent to unconfirmed tokens.
    var marksBad = false
    var payload: [UInt8]
    var connections = 4
    var streams = 1_000
    /// Records the client's memory after every so many pushes; 0 for never.
    var memoryEvery = 0
}

/// The result of a load.
struct LoadOutcome: Sendable {
    var sent = 0
    var accepted = 0
    var rejected = 0
    /// Neither accepted nor rejected: expired, unknown and so on.
    var other = 0
    /// Pushes that were sent more than once.
    var resent = 0
    /// Longest time from `send` to the outcome, of the resent pushes and of all.
    var resentNanosMax: UInt64 = 0
    var nanosMax: UInt64 = 0
    /// Outcomes over time, and the moments when connections were drained.
    var series = OutcomeSeries()
    /// The largest number of ready connections at one time.
    var connections = 0
    /// Resident bytes, one value per `memoryEvery` pushes.
    var memory: [Int] = []
    var seconds: Double = 0
    /// CPU time per outcome after the warm-up in microseconds, of this process and of the simulator.
    var clientMicros = 0.0
    var simulatorMicros = 0.0
    /// The part of the machine that other processes used during the load, in percent.
    var othersPercent = 0.0
    var warmSeconds = 0.0
    /// Acceptances by the simulator's own count.
    var acceptedByServer = 0

    var ended: Int { accepted + rejected + other }
    /// Outcomes per second after the warm-up.
    var pace: Double { series.perSecond(from: warmSeconds) }
    /// By how much the slowest second among those that begin `seconds` after a GOAWAY is below the mean, in percent.
    func deepest(after seconds: Double) -> Double {
        series.seconds(afterMarks: seconds).min().map { BenchFigure.below($0, pace) } ?? .nan
    }

    /// By how much the seconds that begin with a GOAWAY are below the others, in percent.
    var dipAtMarks: Double {
        series.aroundMarks(from: warmSeconds).map { BenchFigure.below($0.with, $0.without) } ?? .nan
    }
}
