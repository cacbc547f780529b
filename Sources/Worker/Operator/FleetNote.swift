// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON

/// The facts of a worker for its row on the pages of the other workers.
struct FleetNote: Sendable, Equatable {
    /// The consumer group.
    var group = ""
    /// The machine's name, and the port of the operator's pages.
    var host = ""
    var port: UInt16 = 0
    /// The address of its page; nil where others cannot know it.
    var url: String?
    /// `ProcessSnapshot.Health`.
    var health = ""
    var version = ""
    /// Pushes per second that APNs accepted; nil before the second look.
    var pushRate: Double?
    /// Records behind, of all its partitions.
    var lagRecords: Double?
    /// Age of its oldest unsettled record.
    var oldestSeconds: Double?

    /// Members are added, never changed: workers of several versions read them.
    var json: [UInt8] {
        var writer = JSONWriter(reservingCapacity: 256)
        writer.beginObject()
        writer.member("group", group)
        writer.member("host", host)
        writer.member("port", Int64(port))
        writer.member("url", ifPresent: url)
        writer.member("health", health)
        writer.member("version", version)
        for (name, value) in [
            ("push_rate", pushRate), ("lag_records", lagRecords), ("oldest_s", oldestSeconds),
        ] as [(StaticString, Double?)] {
            guard let value, value.isFinite else { continue }
            writer.key(name)
            writer.double((value * 10).rounded() / 10)
        }
        writer.endObject()
        return writer.bytes
    }
}

extension FleetNote {
    /// Nil for anything that no worker writes.
    init?(_ bytes: [UInt8]) {
        guard let tree = try? JSONTree(parsing: bytes), let group = tree["group"]?.string,
            let host = tree["host"]?.string, let health = tree["health"]?.string
        else { return nil }
        func number(_ name: String) -> Double? { tree[name]?.double.flatMap { (0...1e15).contains($0) ? $0 : nil } }
        self.init(
            group: group, host: host, port: UInt16(clamping: tree["port"]?.int ?? 0),
            url: tree["url"]?.string.flatMap { Configuration.HTTPSection.isAddress($0) ? $0 : nil }, health: health,
            version: tree["version"]?.string ?? "", pushRate: number("push_rate"),
            lagRecords: number("lag_records"), oldestSeconds: number("oldest_s"))
    }
}

/// The address of a worker's page for people at another worker's page.
enum PageAddress {
    /// - Returns: `http.url`; else the address of `http.listen`, unless it means every address of the machine: then nobody knows
    ///   by which name a browser gets there.
    static func url(of http: Configuration.HTTPSection, port: UInt16) -> String? {
        if let url = http.url { return url }
        if ["0.0.0.0", "::"].contains(http.host) { return nil }
        return "http://\(http.host.contains(":") ? "[\(http.host)]" : http.host):\(port)/"
    }

    /// Whether only browsers of that worker's machine get there.
    static func isOfOneMachine(_ url: String) -> Bool {
        guard let start = url.firstRange(of: "://") else { return false }
        return WeakLink.isLoopback(String(url[start.upperBound...].prefix { $0 != "/" }))
    }
}

/// The workers of the group, as their notes say.
struct FleetWorkers: Sendable {
    struct Worker: Sendable {
        var note: FleetNote
        var isThis: Bool
        /// Since its last note, as long as it has none of the last seconds.
        var silentSeconds: Double?
    }

    private(set) var workers: [Worker] = []

    /// Three notes are missing.
    private static let silentMs: Int64 = 15_000
    private static let goneMs: Int64 = 120_000

    init() {}

    /// - Parameters:
    ///   - this: the id of the worker that shows them. Its own note gives the server's time.
    ///   - group: workers of another group are left out.
    init(_ entries: [StateStore.FleetEntry], this: String, group: String) {
        let nowMs = entries.map(\.atMs).max() ?? 0
        let all = entries.compactMap { entry -> Worker? in
            let age = nowMs &- entry.atMs
            guard age <= Self.goneMs, let note = FleetNote(entry.note), note.group.isSame(as: group) else { return nil }
            let silent = age > Self.silentMs ? Double(age) / 1000 : nil
            return Worker(note: note, isThis: entry.id.isSame(as: this), silentSeconds: silent)
        }
        workers = all.sorted { ($0.note.host, $0.note.port) < ($1.note.host, $1.note.port) }
    }

    /// The link to a worker's page; nil for this one, and where its address is not known.
    func link(to worker: Worker) -> String? {
        guard !worker.isThis, let url = worker.note.url else { return nil }
        let ownHost = workers.first(where: \.isThis)?.note.host
        return PageAddress.isOfOneMachine(url) && worker.note.host != ownHost ? nil : url
    }

    /// The machine's name, with the port where the machine has several workers.
    func name(of worker: Worker) -> String {
        let isAlone = workers.filter { $0.note.host == worker.note.host }.count == 1
        return isAlone ? worker.note.host : "\(worker.note.host):\(worker.note.port)"
    }
}
