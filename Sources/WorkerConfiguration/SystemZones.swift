// SPDX-License-Identifier: Apache-2.0
public import PushCore
import Telemetry

/// The system's time zones (`/usr/share/zoneinfo`), each file read once and kept.
///
/// One per shard, without locks. The first lookup of a zone reads a small file and so may wait for the disk; later ones
/// search an array. Names come from users: they are checked before they become paths, and only known zones are kept, at
/// most 1,024.
public final class SystemZones: ZoneTable {
    private static let keptMax = 1_024

    private let directory: String
    private var known: [String: ZoneRules] = [:]
    /// The system has time zones at all.
    private lazy var hasZones = ["UTC", "Etc/UTC", "Europe/London"].contains { rules(of: $0) != nil }
    private lazy var names = ZoneNames(directory: directory)

    public init(directory: String = "/usr/share/zoneinfo") {
        self.directory = directory
    }

    /// Whether the system has zones at all (package `tzdata`).
    public var isPresent: Bool {
        offset(of: "Asia/Shanghai", at: 0) != nil && offset(of: "America/New_York", at: 0) != nil
    }

    /// The text about missing time zones, with the cure.
    public static let absence =
        "no time zones at /usr/share/zoneinfo, so that DND counts in UTC: install the package tzdata"

    /// Number of kept zones.
    var keptCount: Int { known.count }

    public func offset(of zone: String, at ms: Int64) -> Int? {
        guard let rules = rules(of: zone) else { return nil }
        // Rounds down, so that the last millisecond before 1970 is not 1970.
        return rules.offset(at: ms % 1_000 < 0 ? ms / 1_000 - 1 : ms / 1_000)
    }

    /// Whether records may name the zone. Without any zone on this system every well-formed name is let pass: DND and
    /// binds are not to be lost for a missing package.
    package func knows(_ zone: String) -> Bool {
        Self.isName(zone) && (rules(of: zone) != nil || !hasZones)
    }

    /// The name of a zone that differs least; nil if none is near.
    package func nearest(to zone: String) -> String? { names.nearest(to: zone) }

    /// Names outside the tz database are neither looked up nor kept, and neither is a name without a file.
    private func rules(of zone: String) -> ZoneRules? {
        guard Self.isName(zone) else { return nil }
        if let rules = known[zone] { return rules }
        // A system without the tz database's backward links lacks the aliases.
        guard let rules = read(zone) ?? ZoneNames.target(ofAlias: zone).flatMap(read) else { return nil }
        if known.count >= Self.keptMax { known.removeAll(keepingCapacity: true) }
        known[zone] = rules
        return rules
    }

    private func read(_ zone: String) -> ZoneRules? {
        guard case .bytes(let bytes) = SmallFile.read("\(directory)/\(zone)", limit: 1 << 16) else { return nil }
        return ZoneRules(tzif: bytes)
    }

    /// The tz database's rule for names: parts of letters, digits, `_`, `+`, `-`, never beginning with a dot. So a name
    /// cannot leave the directory.
    static func isName(_ zone: String) -> Bool {
        guard !zone.isEmpty, zone.utf8.count <= 64 else { return false }
        return zone.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).allSatisfy { part in
            !part.isEmpty
                && part.allSatisfy { byte in
                    switch byte {
                    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "+"),
                        UInt8(ascii: "-"):
                        true
                    default: false
                    }
                }
        }
    }
}
