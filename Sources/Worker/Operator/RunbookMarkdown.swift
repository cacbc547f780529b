// SPDX-License-Identifier: Apache-2.0

/// HTML of this project's runbooks, which are Markdown of few forms: headings, paragraphs, lists and tables, in them code, bold
/// words and links. The name of an alert leads to its runbook.
struct RunbookMarkdown {
    private enum Block {
        case none
        case paragraph(String)
        case item(String)
        case table([Substring])
    }

    private var html: Markup = ""
    private var block = Block.none
    private var isInList = false

    static func html(_ text: some StringProtocol) -> Markup {
        var page = RunbookMarkdown()
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) { page.take(Substring(line)) }
        page.begin(.none)
        page.endList()
        return page.html
    }

    /// The id of a heading, as links in the document name it.
    private static func slug(_ title: Substring) -> String {
        var slug = ""
        for character in title.lowercased() {
            switch character {
            case "a"..."z", "0"..."9", "-": slug.append(character)
            case " ": slug.append("-")
            default: break
            }
        }
        return slug
    }

    // MARK: Blocks

    private mutating func take(_ line: Substring) {
        if line.isEmpty { return begin(.none) }
        if line.hasPrefix("#") {
            begin(.none)
            return heading(line)
        }
        if line.hasPrefix("- ") { return begin(.item(String(line.dropFirst(2)))) }
        switch block {
        case .table(let rows): block = .table(rows + [line])
        case .paragraph(let words): block = .paragraph(words + " " + line.drop { $0 == " " })
        case .item(let words): block = .item(words + " " + line.drop { $0 == " " })
        case .none: block = line.hasPrefix("|") ? .table([line]) : .paragraph(String(line))
        }
    }

    /// Ends the open block.
    private mutating func begin(_ next: Block) {
        switch block {
        case .none: break
        case .paragraph(let words):
            endList()
            html += "<p>\(Self.inline(words))</p>\n"
        case .item(let words):
            if !isInList { html += "<ul>\n" }
            isInList = true
            html += "<li>\(Self.inline(words))</li>\n"
        case .table(let rows):
            endList()
            table(rows)
        }
        block = next
    }

    private mutating func endList() {
        if isInList { html += "</ul>\n" }
        isInList = false
    }

    private mutating func heading(_ line: Substring) {
        endList()
        let level = line.prefix { $0 == "#" }.count
        let title = line.dropFirst(level).drop { $0 == " " }
        html += "<h\(level) id=\"\(Self.slug(title))\">\(Self.inline(title, linksAlerts: false))</h\(level)>\n"
    }

    /// With the roles and labels of `PageTable`, for narrow screens.
    private mutating func table(_ rows: [Substring]) {
        var cells = rows.map { row in
            row.drop { $0 == "|" || $0 == " " }.split(separator: " | ").map { cell in
                var cell = cell
                while let last = cell.last, last == " " || last == "|" { cell = cell.dropLast() }
                return cell
            }
        }
        guard cells.count > 2 else { return }
        let titles = cells.removeFirst()
        // The line below the titles.
        cells.removeFirst()
        html += "<table role=\"table\"><thead role=\"rowgroup\"><tr role=\"row\">"
        for title in titles { html += "<th role=\"columnheader\" scope=\"col\">\(Self.inline(title))</th>" }
        html += "</tr></thead>\n<tbody role=\"rowgroup\">\n"
        for row in cells {
            html += "<tr role=\"row\">"
            if let name = row.first { html += "<th role=\"rowheader\" scope=\"row\">\(Self.inline(name))</th>" }
            for (title, cell) in zip(titles, row).dropFirst() {
                html += "<td role=\"cell\" data-label=\"\(title.filter { $0 != "`" })\">\(Self.inline(cell))</td>"
            }
            html += "</tr>\n"
        }
        html += "</tbody></table>\n"
    }

    // MARK: Words

    private static func inline(_ text: some StringProtocol, linksAlerts: Bool = true) -> Markup {
        var html: Markup = ""
        var isBold = false
        var rest = Substring(text)
        while let first = rest.first {
            if rest.hasPrefix("**") {
                html += isBold ? "</b>" : "<b>"
                isBold.toggle()
                rest = rest.dropFirst(2)
            } else if first == "`", let end = rest.dropFirst().firstIndex(of: "`") {
                html += "<code>\(String(rest[..<end].dropFirst()))</code>"
                rest = rest[end...].dropFirst()
            } else if first == "[", let (link, after) = link(rest) {
                html += link
                rest = after
            } else {
                let word = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
                let taken = word.isEmpty ? rest.prefix(1) : word
                html += linksAlerts && isAlert(word) ? alert(word) : "\(String(taken))"
                rest = rest[taken.endIndex...]
            }
        }
        return html
    }

    private static func isAlert(_ word: Substring) -> Bool {
        word.hasPrefix("Carillon") && word.dropFirst(8).first?.isUppercase == true
    }

    private static func alert(_ name: Substring) -> Markup { "<a href=\"#\(name.lowercased())\">\(String(name))</a>" }

    /// A link that `text` begins with, and the text after it. The page has no other document, so of a link to one its name remains.
    private static func link(_ text: Substring) -> (Markup, after: Substring)? {
        guard let middle = text.firstRange(of: "]("), let end = text[middle.upperBound...].firstIndex(of: ")") else {
            return nil
        }
        let name = text[..<middle.lowerBound].dropFirst()
        let target = text[middle.upperBound..<end]
        let words = inline(name, linksAlerts: false)
        let after = text[end...].dropFirst()
        if target.hasPrefix("#") { return ("<a href=\"\(String(target))\">\(words)</a>", after) }
        return (name.hasSuffix(".md") ? "<code>docs/\(words)</code>" : words, after)
    }
}
