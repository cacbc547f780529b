// SPDX-License-Identifier: Apache-2.0
@testable import WorkerConfiguration

/// A zone's file is read or refused; its offsets are those of the file, within a day and some, at any time there is. A
/// zone's name leads nowhere but into the directory.
enum ZoneFuzz {
    /// RFC 9636 section 3.2: less than 26 hours.
    private static let offsetMax = 93_599

    /// A byte of choices; a file as it comes, a name, or a script that a sound file is written from.
    static func run(_ bytes: UnsafeRawBufferPointer) -> [String] {
        let rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
        switch (bytes.first ?? 0) % 3 {
        case 0: return file(Array(rest))
        case 1: return name(String(decoding: rest, as: UTF8.self))
        default: return script(Script(rest))
        }
    }

    // MARK: A file from anywhere

    private static func file(_ bytes: [UInt8]) -> [String] {
        // As much as is read of a file.
        guard let rules = ZoneRules(tzif: Array(bytes.prefix(1 << 16))) else { return [] }
        return times(near: bytes).compactMap { time in
            let offset = rules.offset(at: time)
            return abs(offset) <= offsetMax ? nil : "\(offset) s from UTC at \(time)"
        }
    }

    /// The ends of time, and every eight bytes as one.
    private static func times(near bytes: [UInt8]) -> [Int64] {
        var reader = ByteReader(bytes: Array(bytes.dropFirst(Int(bytes.last ?? 0) % 8).prefix(2048)))
        var times: [Int64] = [.min, .min + 1, -1 << 50, -62_135_596_800, -1, 0, 1, 1_800_000_000, 1 << 50, .max]
        while let time = reader.big(8) { times += [time &- 1, time, time &+ 1] }
        return times
    }

    // MARK: A name

    private static func name(_ name: String) -> [String] {
        let zones = SystemZones()
        if let offset = zones.offset(of: name, at: 1_800_000_000_000), abs(offset) > offsetMax {
            return ["\(name) is \(offset) s from UTC"]
        }
        if zones.keptCount > 1 { return ["\(zones.keptCount) zones for one name"] }
        guard SystemZones.isName(name) else { return zones.keptCount == 0 ? [] : ["kept without a name: \(name)"] }
        let isPlain =
            name.utf8.count <= 64 && name.utf8.first != UInt8(ascii: "/") && !name.utf8.contains(0)
            && !name.utf8.contains(UInt8(ascii: ".")) && !name.utf8.contains { $0 < 0x21 || $0 > 0x7E }
        return isPlain ? [] : ["a way out: \(name.debugDescription)"]
    }

    // MARK: A sound file

    private static func script(_ given: Script) -> [String] {
        var script = given
        let file = SoundZone(&script)
        let bytes = file.bytes
        guard let rules = ZoneRules(tzif: bytes) else { return ["refused: \(file)"] }
        var complaints: [String] = []
        for (index, time) in file.times.enumerated() {
            for (moment, type) in [(time - 1, index == 0 ? 0 : file.indices[index - 1]), (time, file.indices[index])] {
                // The rule begins with the last change.
                if file.footer != nil, index == file.times.count - 1, moment == time { continue }
                let offset = rules.offset(at: moment)
                if offset != file.offsets[type] { complaints.append("\(offset) at \(moment): \(file)") }
            }
        }
        let last = rules.offset(at: file.times.last ?? 0)
        if let footer = file.footer, last != footer { complaints.append("\(last) by the rule, not \(footer)") }
        // Cut anywhere before its rule it is no zone.
        let cut = script.number(below: 256) * file.dataBytes / 256
        if ZoneRules(tzif: Array(bytes.prefix(cut))) != nil { complaints.append("read though cut at \(cut): \(file)") }
        return complaints
    }
}

/// A TZif file as RFC 9636 has it, of a script's making.
private struct SoundZone {
    private(set) var times: [Int64] = []
    private(set) var indices: [Int] = []
    private(set) var offsets: [Int] = []
    /// What its rule says at all times; nil: it has none.
    private(set) var footer: Int?
    /// Counts of what is skipped.
    private var leaps = 0, indicators = 0, characters = 4

    init(_ script: inout Script) {
        let choices = script.byte()
        for _ in 0...script.number(below: 6) { offsets.append(Int(Int32(truncatingIfNeeded: script.word())) % 93_600) }
        var time = Int64(Int32(truncatingIfNeeded: script.word())) * 300
        for _ in 0..<script.number(below: 200) {
            time += 1 + Int64(script.word() >> 8)
            times.append(time)
            indices.append(script.number(below: offsets.count))
        }
        if choices & 1 != 0 { footer = (script.number(below: 49) - 24) * 3600 }
        if choices & 2 != 0 { leaps = script.number(below: 30) }
        if choices & 4 != 0 { indicators = offsets.count }
        if choices & 8 != 0 { characters = script.number(below: 60) + 1 }
    }

    /// Bytes before the rule.
    var dataBytes: Int { bytes.count - rule.count }

    /// An empty block with 32-bit times, then the one that counts.
    var bytes: [UInt8] {
        var bytes = Self.header([0, 0, 0, 0, 1, 1]) + [UInt8](repeating: 0, count: 7)
        bytes += Self.header([indicators, indicators, leaps, times.count, offsets.count, characters])
        for time in times { bytes += Self.big(UInt64(bitPattern: time), 8) }
        bytes += indices.map { UInt8($0) }
        for offset in offsets { bytes += Self.big(UInt64(bitPattern: Int64(offset)), 4) + [0, 0] }
        return bytes + [UInt8](repeating: 0, count: characters + 12 * leaps + 2 * indicators) + rule
    }

    private var rule: [UInt8] {
        guard let footer else { return [0x0A, 0x0A] }
        // POSIX counts westwards.
        return Array("\n<A>\(footer <= 0 ? "" : "-")\(abs(footer) / 3600)\n".utf8)
    }

    private static func header(_ counts: [Int]) -> [UInt8] {
        Array("TZif2".utf8) + [UInt8](repeating: 0, count: 15) + counts.flatMap { big(UInt64($0), 4) }
    }

    private static func big(_ value: UInt64, _ size: Int) -> [UInt8] {
        (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * UInt64($0))) }
    }
}
