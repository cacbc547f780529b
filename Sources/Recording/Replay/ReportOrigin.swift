// SPDX-License-Identifier: Apache-2.0
internal import CBuild
internal import Digits
internal import Glibc
public import JSON
internal import Telemetry

/// When a report was made, by which build, on which machine and with which settings.
public struct ReportOrigin: Sendable, Equatable {
    /// Unix ms.
    public var startedMs: Int64
    public var version: String
    public var machine: String
    /// Such as `rate 500`.
    public var settings: [String]

    /// The origin of a report by this build on this machine.
    ///
    /// - Parameter version: the program's.
    public init(startedMs: Int64, version: String, settings: [String]) {
        self.startedMs = startedMs
        self.settings = settings
        let build = [String(cString: cbuild_kind()), String(cString: cbuild_commit())].filter { !$0.isEmpty }
        self.version = "carillon \(version) (\(build.joined(separator: ", ")))"
        machine = Self.thisMachine
    }

    /// The origin that a report names; nil if it names none.
    init?(_ report: JSONTree) {
        guard let machine = report["machine"]?.string, let version = report["version"]?.string else { return nil }
        self.machine = machine
        self.version = version
        startedMs = report["started_ms"]?.int ?? 0
        settings = report["settings"]?.array?.compactMap(\.string) ?? []
    }

    /// As members of a report.
    public func write(to writer: inout JSONWriter) {
        writer.member("started_ms", startedMs)
        writer.member("version", version)
        writer.member("machine", machine)
        writer.key("settings")
        writer.beginArray()
        for setting in settings { writer.string(setting) }
        writer.endArray()
    }

    /// `2026-11-22 14:05 UTC, carillon 1.0.0 (release, 4f8a…), host, …`.
    var text: String {
        let time = InstantText.dateAndTime(seconds: startedMs.flooringDivision(by: 1000)).prefix(16)
        return "\(time.replacing("T", with: " ")) UTC, \(version), \(machine)"
    }

    /// `host, Linux 6.1.0 x86_64, 2 processors, AMD EPYC`.
    private static var thisMachine: String {
        var system = utsname()
        uname(&system)
        let count = sysconf(Int32(_SC_NPROCESSORS_ONLN))
        let parts = [
            text(of: system.nodename),
            "\(text(of: system.sysname)) \(text(of: system.release)) \(text(of: system.machine))",
            count == 1 ? "1 processor" : "\(count) processors",
        ]
        return (parts + [processor].compactMap { $0 }).joined(separator: ", ")
    }

    private static func text(of field: some Any) -> String {
        withUnsafeBytes(of: field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    private static var processor: String? {
        guard case .bytes(let bytes) = SmallFile.read("/proc/cpuinfo") else { return nil }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        guard let line = lines.first(where: { $0.hasPrefix("model name") }), let colon = line.firstIndex(of: ":")
        else { return nil }
        return String(line[line.index(after: colon)...].drop { $0 == " " })
    }
}
