/// The runbooks of the alerts, as of this version: what a problem means, where to look, what to do.
enum RunbookPage {
    static let markup = PageFrame(
        title: "Runbooks – Carillon", links: [("./", "Overview")],
        body: PageFrame.section(
            "runbooks", "Runbooks", isLive: false, isWide: true, "<div class=\"prose\">\(RunbookText.html)</div>")
    ).markup
}
