// SPDX-License-Identifier: Apache-2.0
/// This version's runbooks of the alerts: for each problem its meaning, the places to look at, and the actions.
enum RunbookPage {
    static let markup = PageFrame(
        title: "Runbooks – Carillon", links: [("./", "Overview")],
        body: PageFrame.section(
            "runbooks", "Runbooks", isLive: false, isWide: true, "<div class=\"prose\">\(RunbookText.html)</div>")
    ).markup
}
