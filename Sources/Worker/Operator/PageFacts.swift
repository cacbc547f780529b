import Fleet
import Telemetry

/// What the operator's page shows of one moment. Plain values: the page is a function of them.
struct PageFacts: Sendable {
    var snapshot = ProcessSnapshot()
    /// Rates and sums, as `carillon top` counts them; rates are of some seconds.
    var view = FleetView([], after: [], wallSeconds: 0)
    /// What did not end as an ordinary push in the last minutes.
    var recent: [FleetView.Outcome] = []
    /// Since when, for `recent`; nil: there is no look before.
    var recentSeconds: Double?
    var flow = FlowRing()
    var version = ""
    var library = ""
    /// Unix ms.
    var atMs: Int64 = 0
    var uptimeSeconds: Double?
}
