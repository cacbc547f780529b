// SPDX-License-Identifier: Apache-2.0
/// A table of a page. Its first column names the row. On a narrow screen each row becomes a block of lines with the
/// column names. The roles are explicit, because such a layout would remove them.
struct PageTable {
    struct Column {
        var title: Markup
        var isNumber: Bool

        init(_ title: Markup, isNumber: Bool = false) {
            self.title = title
            self.isNumber = isNumber
        }
    }

    /// The subject, for screen readers.
    var caption: Markup
    var columns: [Column]
    /// As many cells as columns.
    var rows: [[Markup]]
    /// Number of rows that are not shown.
    var hidden = 0
    /// Shown in place of a table without rows.
    var nothing: Markup = "none"

    static let rowsMax = 40

    var markup: Markup {
        if rows.isEmpty { return "<p class=\"quiet\">\(nothing)</p>" }
        let heads = columns.map { column -> Markup in
            "<th role=\"columnheader\" scope=\"col\"\(Self.style(column))>\(column.title)</th>"
        }
        let shown = rows.prefix(Self.rowsMax)
        let more = max(0, hidden) + rows.count - shown.count
        let last: Markup = more > 0 ? "<p class=\"quiet\">and \(more) more</p>" : ""
        return """
            <table role="table"><caption>\(caption)</caption>
            <thead role="rowgroup"><tr role="row">\(heads.joined())</tr></thead>
            <tbody role="rowgroup">
            \(shown.map(row).joined())</tbody></table>\(last)

            """
    }

    private func row(_ cells: [Markup]) -> Markup {
        var text: Markup = "<tr role=\"row\">"
        for (index, (column, cell)) in zip(columns, cells).enumerated() {
            text +=
                index == 0
                ? "<th role=\"rowheader\" scope=\"row\">\(cell)</th>"
                : "<td role=\"cell\" data-label=\"\(column.title)\"\(Self.style(column))>\(cell)</td>"
        }
        return text + "</tr>\n"
    }

    private static func style(_ column: Column) -> Markup { column.isNumber ? " class=\"number\"" : "" }
}
