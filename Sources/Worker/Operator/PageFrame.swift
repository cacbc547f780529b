// SPDX-License-Identifier: Apache-2.0
/// The common frame of all operator pages. Links are relative, so that it works below any path of a proxy.
struct PageFrame {
    var title: Markup
    /// Next to the name in the header: the state as a word.
    var state: Markup = ""
    /// The machine and the version.
    var place: Markup = ""
    /// The script reloads it every two seconds.
    var isLive = false
    var links: [(place: Markup, words: Markup)] = []
    var body: Markup

    var markup: Markup {
        let notes: Markup =
            isLive
            ? """
            <noscript><p class="quiet">Without scripts: <a href="./">load the page again</a> for new numbers.</p></noscript>
            """ : ""
        let items = links.map { link -> Markup in "<li><a href=\"\(link.place)\">\(link.words)</a></li>" }
        return """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <title>\(title)</title>
            <link rel="stylesheet" href="page/style.css">
            <link rel="icon" href="page/icon.svg" type="image/svg+xml">
            <script src="page/script.js" defer></script>
            </head>
            <body>
            <a class="skip" href="#main">To the content</a>
            <header>
            <img src="page/icon.svg" alt="" width="22" height="22">
            <h1>Carillon</h1>
            \(state)
            <p id="place" class="quiet">\(place)</p>
            <p id="link" class="quiet"></p>
            <button id="pause" type="button" aria-pressed="false" hidden>Pause</button>
            </header>
            <nav aria-label="Parts of the page"><ul>\(items.joined())</ul></nav>
            <main id="main" tabindex="-1">
            \(notes)\(body)
            </main>
            <footer><nav aria-label="For programs"><ul>\
            <li><a href="metrics">metrics</a></li><li><a href="statusz">statusz</a></li>\
            <li><a href="readyz">readyz</a></li><li><a href="livez">livez</a></li>\
            <li><a href="stats">stats</a></li></ul></nav></footer>
            </body>
            </html>

            """
    }

    /// A section of a page. Live sections are compared and updated by their id.
    ///
    /// - Parameters:
    ///   - note: a few words next to the title, about the content of the section.
    ///   - folds: it can be folded to its title and note. On a phone the script folds it where `isHealthy`.
    static func section(
        _ id: Markup, _ title: Markup, note: Markup = "", isLive: Bool = true, isWide: Bool = false,
        folds: Bool = false, isHealthy: Bool = true, _ body: Markup
    ) -> Markup {
        let place: Markup = isWide ? "wide" : "half"
        let more: Markup = note.isEmpty ? "" : "<p class=\"note\">\(note)</p>"
        let head: Markup = "<h2 id=\"\(id)-title\">\(title)</h2>\(more)"
        let all: Markup =
            folds
            ? """
            <details\(isHealthy ? " data-well" : "") open><summary class="head">\(head)</summary>
            \(body)
            </details>
            """ : "<div class=\"head\">\(head)</div>\n\(body)"
        return """
            <section id="\(id)" class="\(place)" aria-labelledby="\(id)-title"\(isLive ? " data-live" : "")>
            \(all)
            </section>

            """
    }
}

/// The state of something: a sign, a word and a colour.
enum PageState {
    case good, warning, bad, quiet

    /// The class of the style sheet.
    var style: Markup {
        switch self {
        case .good: "good"
        case .warning: "warning"
        case .bad: "bad"
        case .quiet: "plain"
        }
    }

    var sign: Markup {
        switch self {
        case .good: "✓"
        case .warning: "!"
        case .bad: "✗"
        case .quiet: "·"
        }
    }

    func badge(_ words: Markup) -> Markup {
        "<span class=\"state \(style)\"><span aria-hidden=\"true\">\(sign)</span> \(words)</span>"
    }

    /// A badge on its own ground.
    func pill(_ words: Markup) -> Markup {
        "<span class=\"pill \(style)\"><span aria-hidden=\"true\">\(sign)</span> \(words)</span>"
    }
}

extension ProcessPart.State {
    var page: PageState {
        switch self {
        case .ok: .good
        case .degraded: .warning
        case .down: .bad
        }
    }
}

extension ProcessSnapshot.Health {
    var page: PageState {
        switch self {
        case .ok: .good
        case .degraded, .draining, .starting: .warning
        case .down: .bad
        }
    }
}
