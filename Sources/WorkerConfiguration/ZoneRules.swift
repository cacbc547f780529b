// SPDX-License-Identifier: Apache-2.0
/// One time zone from a TZif file (RFC 9636): its changes of offset, and the rule after the last change.
struct ZoneRules: Sendable {
    /// Seconds since 1970, rising.
    private var transitions: [Int64] = []
    /// The offset that begins at each transition, in seconds east.
    private var offsets: [Int] = []
    /// Before the first transition.
    private var first = 0
    private var footer: PosixZone?

    /// - Returns: nil for bytes that are not a TZif file. Only data with 64-bit times is read (versions 2 and up, which
    ///   every system of this century writes).
    init?(tzif bytes: [UInt8]) {
        var reader = ByteReader(bytes: bytes)
        guard let old = Header(&reader), old.version >= UInt8(ascii: "2"), reader.skip(old.length(timeSize: 4)),
            let header = Header(&reader)
        else { return nil }
        var transitions: [Int64] = []
        for _ in 0..<header.times {
            guard let time = reader.big(8) else { return nil }
            transitions.append(time)
        }
        guard let indices = reader.take(header.times) else { return nil }
        var types: [Int] = []
        for _ in 0..<header.types {
            guard let offset = reader.big(4), reader.skip(2), abs(offset) <= 93_599 else { return nil }
            types.append(Int(offset))
        }
        guard let first = types.first, indices.allSatisfy({ Int($0) < types.count }),
            zip(transitions, transitions.dropFirst()).allSatisfy({ $0 < $1 }),
            reader.skip(header.tail(timeSize: 8))
        else { return nil }
        self.transitions = transitions
        self.offsets = indices.map { types[Int($0)] }
        self.first = first
        footer = PosixZone(reader.rest.filter { $0 != 0x0A })
    }

    /// Seconds east of UTC at a Unix time in seconds.
    func offset(at seconds: Int64) -> Int {
        guard let last = transitions.last, seconds >= (transitions.first ?? .max) else {
            return transitions.isEmpty ? (footer?.offset(at: seconds) ?? first) : first
        }
        if seconds >= last, let footer { return footer.offset(at: seconds) }
        // The last transition that is not later.
        var low = 0
        var high = transitions.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if transitions[middle] <= seconds { low = middle } else { high = middle }
        }
        return offsets[low]
    }

    /// RFC 9636 section 3.1.
    private struct Header {
        let version: UInt8
        let utIndicators: Int, standardIndicators: Int, leaps: Int, times: Int, types: Int, characters: Int

        init?(_ reader: inout ByteReader) {
            guard let magic = reader.take(4), Array(magic) == Array("TZif".utf8), let version = reader.big(1),
                reader.skip(15), let ut = reader.count(), let standard = reader.count(), let leaps = reader.count(),
                let times = reader.count(), let types = reader.count(), let characters = reader.count()
            else { return nil }
            self.version = UInt8(truncatingIfNeeded: version)
            utIndicators = ut
            standardIndicators = standard
            self.leaps = leaps
            self.times = times
            self.types = types
            self.characters = characters
        }

        /// Bytes of a whole data block. Counts are small (see ``ByteReader/count()``), so nothing overflows.
        func length(timeSize: Int) -> Int { times * (timeSize + 1) + types * 6 + tail(timeSize: timeSize) }

        /// Bytes after the types.
        func tail(timeSize: Int) -> Int {
            characters + leaps * (timeSize + 4) + standardIndicators + utIndicators
        }
    }
}

/// Reads big-endian numbers from bytes of any length.
struct ByteReader {
    let bytes: [UInt8]
    private var at = 0

    init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    var rest: ArraySlice<UInt8> { bytes[at...] }

    mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, count <= bytes.count - at else { return nil }
        defer { at += count }
        return bytes[at..<(at + count)]
    }

    mutating func skip(_ count: Int) -> Bool { take(count) != nil }

    /// A signed number of 1, 4 or 8 bytes.
    mutating func big(_ size: Int) -> Int64? {
        guard let part = take(size) else { return nil }
        let value = part.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return switch size {
        case 4: Int64(Int32(truncatingIfNeeded: value))
        default: Int64(bitPattern: value)
        }
    }

    /// A count from a TZif header, limited by the size of the file.
    mutating func count() -> Int? {
        guard let value = big(4), value >= 0, value <= bytes.count else { return nil }
        return Int(value)
    }
}
