// SPDX-License-Identifier: Apache-2.0

/// This version's runbooks (docs/runbooks.md): symptoms, the meaning of each alert, the places to look at, and the actions.
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
            "<div class=\"prose\">\(RunbookMarkdown.html(chapters))</div>")
    ).markup

    /// The page has a title and an introduction of its own.
    private static var chapters: Substring {
        let text = String(decoding: PackageResources.runbooks_md, as: UTF8.self)
        return text[(text.firstRange(of: "\n## ")?.lowerBound ?? text.startIndex)...]
    }
}
