/// What all pages of the operator have around them. Its links are relative, so that it may stand below any path of a proxy.
struct PageFrame {
    var title: Markup
    /// Beside the title in the head.
    var state: Markup = ""
    /// It is read again every two seconds by the script.
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
            <h1>Carillon</h1>
            \(state)
            <p id="link" class="quiet"></p>
            <button id="pause" type="button" aria-pressed="false" hidden>Pause</button>
            </header>
            <nav aria-label="Parts of the page"><ul>\(items.joined())</ul></nav>
            <main id="main" tabindex="-1">
            \(notes)\(body)
            </main>
            <footer><nav aria-label="For programs"><ul>\
            <li><a href="metrics">metrics</a></li><li><a href="statusz">statusz</a></li>\
            <li><a href="readyz">readyz</a></li><li><a href="livez">livez</a></li></ul></nav></footer>
            </body>
            </html>

            """
    }

    /// A part of a page; those that live are compared and renewed by their id.
    static func section(
        _ id: Markup, _ title: Markup, isLive: Bool = true, isWide: Bool = false, _ body: Markup
    ) -> Markup {
        let place: Markup = isWide ? "wide" : "half"
        return """
            <section id="\(id)" class="\(place)" aria-labelledby="\(id)-title"\(isLive ? " data-live" : "")>
            <h2 id="\(id)-title">\(title)</h2>
            \(body)
            </section>

            """
    }
}

/// How something stands: a sign and a word, and a colour besides.
enum PageState {
    case good, warning, bad, quiet

    func badge(_ words: Markup) -> Markup {
        switch self {
        case .good: "<span class=\"state good\"><span aria-hidden=\"true\">✓</span> \(words)</span>"
        case .warning: "<span class=\"state warning\"><span aria-hidden=\"true\">!</span> \(words)</span>"
        case .bad: "<span class=\"state bad\"><span aria-hidden=\"true\">✗</span> \(words)</span>"
        case .quiet: "<span class=\"state\"><span aria-hidden=\"true\">·</span> \(words)</span>"
        }
    }
}
