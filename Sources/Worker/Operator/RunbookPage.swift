// SPDX-License-Identifier: Apache-2.0
/// This version's runbooks: symptoms, the meaning of each alert, the places to look at, and the actions.
enum RunbookPage {
    static let markup = PageFrame(
        title: "Runbooks – Carillon",
        links: [
            ("./", "Overview"), ("#symptoms-causes-and-actions", "Symptoms"), ("#objectives", "Objectives"),
            ("#process", "Process"), ("#kafka", "Kafka"), ("#apns", "APNs"), ("#redis", "Redis"),
            ("#without-an-alert", "Without an alert"),
        ],
        body: PageFrame.section(
            "runbooks", "Runbooks", isLive: false, isWide: true,
            "<div class=\"prose\">\(RunbookText.symptoms)\(RunbookText.alerts)\(RunbookText.withoutAlert)</div>")
    ).markup
}
