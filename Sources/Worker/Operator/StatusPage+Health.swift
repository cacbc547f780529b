// SPDX-License-Identifier: Apache-2.0
import Fleet

/// Health: one line if all is well, else a card for each problem with its cause and a link to its runbook.
extension StatusPage {
    /// A screen reader announces the word when it changes, and nothing else on the page.
    var state: Markup {
        let health = snapshot.health
        return "<p id=\"state\" role=\"status\" data-live>\(health.page.pill("\(health.rawValue)"))</p>"
    }

    private static let cardsMax = 12

    var health: Markup {
        let problems = snapshot.parts.flatMap { part in part.problems.map { (part: part, problem: $0) } }
        let cards = (0...2).flatMap { rank in
            problems.filter { $0.problem.rank == rank }.map { Self.card($0.part, $0.problem, nowMs: snapshot.atMs) }
        }
        let more: Markup =
            cards.count > Self.cardsMax ? "<p class=\"quiet\">and \(cards.count - Self.cardsMax) more</p>" : ""
        let all: Markup =
            cards.isEmpty ? "" : "<div class=\"cards\">\(cards.prefix(Self.cardsMax).joined())</div>\(more)"
        return PageFrame.section(
            "health", "Health", note: headline, isWide: true, "\(all)\(problems.isEmpty ? "" : wellParts)")
    }

    private var headline: Markup {
        switch snapshot.health {
        case .ok: "All is well."
        case .degraded: "It runs, and needs attention."
        case .down: "It does not work, or only in part."
        case .starting: "It starts: nothing is known yet."
        case .draining: "It ends: it reads nothing more, and finishes its work."
        }
    }

    /// One that has ended has no colour.
    private static func card(_ part: ProcessPart, _ problem: ProcessPart.Problem, nowMs: Int64) -> Markup {
        let page = problem.endedMs == nil ? problem.state.page : .quiet
        let link: Markup =
            problem.alert.map { alert in
                """
                <p><a href="runbooks#\(alert.lowercased())">What to do\
                <span class="hidden"> about: \(words(part)) \(problem.state.rawValue)</span></a></p>
                """
            } ?? ""
        return """
            <div class="card \(page.style)"><h3><span aria-hidden="true">\(page.sign)</span> \(words(part)): \
            \(problem.state.rawValue) <span class="quiet">\(problem.course(nowMs: nowMs))</span></h3>\
            <p>\(problem.text)</p>\(link)</div>

            """
    }

    /// Parts without a problem, in one line.
    private var wellParts: Markup {
        let well = snapshot.parts.filter { $0.problems.isEmpty }
        let items = well.prefix(Self.cardsMax).map { part -> Markup in
            "<li>\(PageState.good.badge(Self.words(part)))</li>"
        }
        let more: Markup =
            well.count > items.count ? "<li class=\"quiet\">and \(well.count - items.count) more</li>" : ""
        return items.isEmpty ? "" : "<ul class=\"facts\">\(items.joined())\(more)</ul>"
    }

    private static func words(_ part: ProcessPart) -> Markup {
        switch part.name {
        case .kafka: "Kafka"
        case .redis: "Redis"
        case .configuration: "Configuration"
        case .clock: "Clock"
        case .events: "Events"
        case .system: "Process"
        case .loop: "Shards"
        case .app(let id, let environment): "\(id) \(environment)"
        }
    }
}
