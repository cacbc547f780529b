import Crypto
import Digits
import EventLoop
import JSON
import Telemetry

/// The operator's HTTP pages: `/metrics`, `/livez`, `/readyz`, `/statusz`, and `/` for people (contract section 9).
final class OperatorPages {
    private let server: HTTPServer
    var port: UInt16 { server.port }

    /// A loop that has not turned for so long is dead; dependencies have no say in liveness.
    static let deadSeconds = 30.0

    /// - Parameter oldestTurn: seconds since the loop of some shard last turned.
    init(
        loop: Loop, http: Configuration.HTTPSection, registry: MetricsRegistry, oldestTurn: @escaping () -> Double,
        snapshot: @escaping () -> ProcessSnapshot
    ) throws(LoopFault) {
        server = try HTTPServer(loop: loop, host: http.host, port: http.port, access: http.access)
        server.get("/metrics") { _ in
            HTTPResponse(contentType: MetricsRegistry.contentType, body: registry.exposition())
        }
        server.get("/livez", isOpen: true) { _ in
            let oldest = oldestTurn()
            return oldest < Self.deadSeconds
                ? HTTPResponse(text: "ok\n")
                : HTTPResponse(status: 503, text: "a shard has not turned for \(Int(oldest)) s\n")
        }
        server.get("/readyz", isOpen: true) { _ in
            let snapshot = snapshot()
            return HTTPResponse(
                status: snapshot.isReady ? 200 : 503, text: snapshot.lines.joined(separator: "\n") + "\n")
        }
        server.get("/statusz") { _ in
            HTTPResponse(contentType: "application/json", body: snapshot().json)
        }
        server.get("/") { _ in
            HTTPResponse(
                contentType: "text/html; charset=utf-8", body: Array(Self.page(snapshot()).utf8),
                allowedSources: Self.styleSource)
        }
    }

    private static let style = """
        body{font:15px/1.5 system-ui;margin:2em auto;max-width:60em}td,th{padding:.3em .8em;text-align:left;\
        vertical-align:top;border-bottom:1px solid #ddd}
        """

    /// The page's own style, by its hash: no other style and no script runs in it (Content Security Policy Level 3).
    private static let styleSource: String = {
        let hash = Base64.encode(SHA256.hash(Array(style.utf8)))
        return "style-src 'sha256-\(String(decoding: hash, as: UTF8.self))'"
    }()

    private static func page(_ snapshot: ProcessSnapshot) -> String {
        let missing = snapshot.missing
        var rows = ""
        for shard in snapshot.shards {
            rows +=
                "<tr><td>\(shard.index)</td><td>\(shard.assignedPartitions)</td><td>\(shard.pendingRecords)</td>"
                + "<td>\(shard.isRedisReady ? "ready" : "away")</td><td>"
            rows += shard.clients.map { client in
                let state =
                    client.pausedBecause.map { "paused: \($0)" } ?? (client.isUsable ? "usable" : "no connection")
                return "\(client.app) → \(client.host): \(state), \(client.connections) connections, "
                    + "\(client.inFlight) in flight, \(client.queued) queued"
            }
            .map(HTMLText.escaped).joined(separator: "<br>")
            rows += "</td></tr>"
        }
        let apps = snapshot.apps.map { app in
            let rate = app.openRate.map { ", open rate \(Int(($0 * 100).rounded())) %" } ?? ""
            return HTMLText.escaped("\(app.id): \(app.accepted) pushes accepted, \(app.opened) opened\(rate)")
        }
        let state =
            (missing.isEmpty ? "ready" : "not ready: " + missing.map(HTMLText.escaped).joined(separator: "; "))
            + snapshot.notes.map { "; " + HTMLText.escaped($0) }.joined()
        return """
            <!doctype html><html lang="en"><meta charset="utf-8"><title>Carillon</title>
            <style>\(style)</style>
            <h1>Carillon</h1><p>\(state)</p>
            <table><tr><th>shard</th><th>partitions</th><th>records in hand</th><th>Redis</th><th>APNs</th></tr>\
            \(rows)</table>
            <p>\(apps.joined(separator: "<br>"))</p>
            <p><a href="/metrics">metrics</a> · <a href="/statusz">statusz</a> · <a href="/readyz">readyz</a> ·
            <a href="/livez">livez</a></p></html>

            """
    }
}
