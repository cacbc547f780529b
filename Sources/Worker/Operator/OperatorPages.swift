// SPDX-License-Identifier: Apache-2.0
import EventLoop
import JSON
import Telemetry

/// The operator's HTTP pages: `/metrics`, `/livez`, `/readyz`, `/statusz`, and for people `/` with `/trace` (contract
/// section 9).
final class OperatorPages {
    /// The pages' data sources in the process, on its loop.
    struct Sources {
        /// Seconds since the last turn of the slowest shard's loop.
        var oldestTurn: () -> Double
        /// Called before the metrics are written.
        var willExpose: () -> Void
        var snapshot: () -> ProcessSnapshot
        var facts: () -> PageFacts
        /// Starts to answer a question of the trace box; `didAnswer` ends it.
        var ask: (TraceQuestion) -> Void
        /// The same of the statistics; `didAnswer` ends it.
        var askStatistics: (StatisticsQuestion) -> Void
    }

    private let server: HTTPServer
    private let box: TraceBox
    private let loop: Loop
    private let statistics: StatisticsQueue
    private let numbers: StatisticsWatch
    var port: UInt16 { server.port }

    /// A loop without a turn for this time is dead. Dependencies do not affect liveness.
    static let deadSeconds = 10.0
    /// A loop that has not turned for so long does no work.
    static let stuckSeconds = 5.0
    /// Time limit of a trace answer; less than the server's limit for a request.
    static let answerNanos: UInt64 = 8_000_000_000

    init(
        loop: Loop, http: Configuration.HTTPSection, registry: MetricsRegistry, _ sources: Sources
    ) throws(LoopFault) {
        server = try HTTPServer(loop: loop, host: http.host, port: http.port, access: http.access)
        box = TraceBox(loop: loop)
        self.loop = loop
        statistics = StatisticsQueue(sources.askStatistics)
        numbers = StatisticsWatch(statistics)
        servePrograms(registry, sources)
        servePeople(sources)
    }

    /// The trace question is answered.
    func didAnswer(_ answer: TraceAnswer) { box.end(answer) }

    /// The question about the statistics is answered.
    func didAnswer(_ statistics: StatisticsAnswer) { self.statistics.end(statistics) }

    private func servePrograms(_ registry: MetricsRegistry, _ sources: Sources) {
        server.get("/metrics", .figures) { _ in
            sources.willExpose()
            return HTTPResponse(contentType: MetricsRegistry.contentType, body: registry.exposition())
        }
        server.get("/livez", .probe) { _ in
            let oldest = sources.oldestTurn()
            return oldest < Self.deadSeconds
                ? HTTPResponse(text: "ok\n")
                : HTTPResponse(status: 503, text: "a shard has not turned for \(Int(oldest)) s\n")
        }
        server.get("/readyz", .probe) { _ in
            let snapshot = sources.snapshot()
            return HTTPResponse(
                status: snapshot.isReady ? 200 : 503, text: snapshot.lines.joined(separator: "\n") + "\n")
        }
        server.get("/statusz") { _ in
            HTTPResponse(contentType: "application/json", body: sources.snapshot().json)
        }
        server.getLater("/stats") { [statistics] request, responder in
            switch StatisticsQuestion.read(request.query, nowMs: Loop.wallMs()) {
            case .wrong(let why): responder.respond(HTTPResponse(status: 400, text: why + "\n"))
            case .question(let question):
                statistics.begin(question) { if case .response(let response) = $0 { responder.respond(response) } }
            }
        }
    }

    private func servePeople(_ sources: Sources) {
        server.get("/") { [numbers, loop] _ in
            var facts = sources.facts()
            facts.statistics = numbers.statistics(nowNanos: loop.nowNanos, nowMs: loop.wallMs)
            return Self.page(StatusPage(facts).markup)
        }
        server.get("/runbooks") { _ in Self.page(RunbookPage.markup) }
        server.getLater("/trace", fromOwnPagesOnly: true) { [box, loop] request, responder in
            var form = TraceForm(apps: sources.snapshot().apps.map(\.id))
            func respond(_ answer: TraceAnswer?) {
                let page = TracePage(form: form, answer: answer, nowMs: loop.wallMs)
                responder.respond(Self.page(page.markup, status: answer?.status ?? 200))
            }
            switch TraceQuestion.read(request.query) {
            case .empty: respond(nil)
            case .wrong(let why): respond(.wrong(why))
            case .question(let question):
                form.question = question
                if box.begin({ respond($0) }) { sources.ask(question) }
            }
        }
        for (path, type, body) in [
            ("/page/style.css", "text/css; charset=utf-8", PackageResources.style_css),
            ("/page/script.js", "text/javascript; charset=utf-8", PackageResources.script_js),
            ("/page/icon.svg", "image/svg+xml", PackageResources.icon_svg),
        ] {
            server.get(path) { _ in HTTPResponse(contentType: type, body: body) }
        }
    }

    private static func page(_ markup: Markup, status: Int = 200) -> HTTPResponse {
        HTTPResponse(
            status: status, contentType: "text/html; charset=utf-8", body: Array(markup.html.utf8), usesOwnFiles: true)
    }
}
