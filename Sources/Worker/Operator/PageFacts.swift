// SPDX-License-Identifier: Apache-2.0
import Fleet
import Telemetry

/// The content of the operator's page at one moment. Plain values; the page is a function of them.
struct PageFacts: Sendable {
    var snapshot = ProcessSnapshot()
    /// Rates and sums, as in `carillon top`. Rates cover some seconds.
    var view = FleetView([], after: [], wallSeconds: 0)
    /// Outcomes of the last minutes other than ordinary pushes.
    var recent: [FleetView.Outcome] = []
    /// Rates of the same time by verdict.
    var verdicts: [(verdict: String, rate: Double)] = []
    /// Latencies of the same time: of all pushes, and by lane.
    var endToEnd: FleetView.Spread?
    var lanes: [(lane: String, spread: FleetView.Spread)] = []
    /// Seconds covered by `recent`; nil without an earlier look.
    var recentSeconds: Double?
    var flow = FlowRing()
    /// The statistics of all workers; nil before they were read.
    var statistics: PageStatistics?
    /// The workers of the group; empty before they were read.
    var fleet = FleetWorkers()
    /// The machine's name.
    var host = ""
    var version = ""
    var library = ""
    /// Unix ms.
    var atMs: Int64 = 0
    var uptimeSeconds: Double?
}
