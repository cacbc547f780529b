// SPDX-License-Identifier: Apache-2.0
import JSON
import PushCore

/// `dnd` of a `settings` record (contract section 2, note 2).
extension EventReader {
    func readDND(_ object: JSONCursor, into change: inout UserState.SettingsChange) throws(BadRecord) {
        let dnd = FieldScope(quietKeys.fields(of: object), path: "$.dnd")
        change.dndOn = try dnd.bool(.on)
        change.dndStart = try minuteOfDay(dnd, .start)
        change.dndEnd = try minuteOfDay(dnd, .end)
        change.dndDays = try days(dnd)
        change.dndZone = try zone(dnd, .tz)
        change.dndLevel = try dnd.int(.level).map { Int(truncatingIfNeeded: $0) }
        if let level = change.dndLevel, level != 1, level != 5 {
            throw dnd.outOfRange(.level, "must be 1 or 5")
        }
        if let start = change.dndStart, start == change.dndEnd {
            throw dnd.outOfRange(.end, "start and end must differ")
        }
        let hasSingleWindow = change.dndStart != nil || change.dndEnd != nil || change.dndDays != nil
        guard let list = try dnd.list(.windows, of: "windows", atMost: InputLimit.windows) else { return }
        if hasSingleWindow {
            throw dnd.outOfRange(.windows, "cannot be given together with start, end or days")
        }
        // The list's elements use the same table of keys: the fields of `dnd` are not read any more.
        var windows: [DNDWindow] = []
        for element in list.elements { windows.append(try window(element, windows.count)) }
        change.dndWindows = windows
    }

    private func window(_ element: JSONCursor, _ index: Int) throws(BadRecord) -> DNDWindow {
        do throws(BadRecord) {
            guard element.isObject else {
                throw BadRecord(.wrongType, "must be an object", at: "", byte: element.offset)
            }
            let part = FieldScope(quietKeys.fields(of: element), path: "")
            guard let start = try minuteOfDay(part, .start) else { throw part.missing(.start) }
            guard let end = try minuteOfDay(part, .end) else { throw part.missing(.end) }
            if start == end { throw part.outOfRange(.end, "start and end must differ") }
            return DNDWindow(start: start, end: end, days: try days(part) ?? .all)
        } catch {
            throw BadRecord(error.rule, error.why, at: "$.dnd.windows[\(index)]\(error.path)", byte: error.byte)
        }
    }

    private func days(_ scope: FieldScope<QuietKey>) throws(BadRecord) -> DNDWindow.Days? {
        guard let list = try scope.list(.days, of: "days", atMost: InputLimit.elements) else { return nil }
        var days: DNDWindow.Days = []
        var index = 0
        for element in list.elements {
            guard let number = element.int else {
                throw scope.fault(.wrongType, "must be a 64-bit integer", .days, element, item: index)
            }
            guard (1...7).contains(number) else {
                throw scope.fault(.outOfRange, "must be from 1 (Monday) to 7", .days, element, item: index)
            }
            days.insert(DNDWindow.Days(day: Int(number)))
            index += 1
        }
        return days
    }

    /// A time zone that the system knows, or an empty text.
    func zone<Key>(_ scope: FieldScope<Key>, _ key: Key) throws(BadRecord) -> String? {
        guard let zone = try scope.string(key, bytes: InputLimit.word) else { return nil }
        if zone.isEmpty || zones.knows(zone) { return zone }
        let hint = zones.nearest(to: zone).map { "; the nearest name is \($0)" } ?? ""
        throw scope.outOfRange(key, "is not a time zone of this system\(hint)")
    }

    /// `22:00` as minutes of the day.
    private func minuteOfDay(_ dnd: FieldScope<QuietKey>, _ key: QuietKey) throws(BadRecord) -> Int? {
        guard let text = try dnd.string(key) else { return nil }
        let digits = Array(text.utf8)
        guard digits.count == 5, digits[2] == UInt8(ascii: ":"),
            let hour = Self.twoDigits(digits[0], digits[1]), hour < 24,
            let minute = Self.twoDigits(digits[3], digits[4]), minute < 60
        else { throw dnd.outOfRange(key, "must be a time of day like 22:00") }
        return hour * 60 + minute
    }

    private static func twoDigits(_ tens: UInt8, _ ones: UInt8) -> Int? {
        let zero = UInt8(ascii: "0")
        guard tens >= zero, tens <= zero + 9, ones >= zero, ones <= zero + 9 else { return nil }
        return Int(tens - zero) * 10 + Int(ones - zero)
    }

    /// The error of a `settings` record that the stored settings make wrong.
    func windowFault(_ fault: DNDWindow.Fault, in bytes: [UInt8]) -> BadRecord {
        let parsed = parse(bytes) { root in
            let object = root["dnd"]
            let end = object?["end"]
            return switch fault {
            case .noStart: ("$.dnd.start", object?.offset)
            case .noEnd: ("$.dnd.end", object?.offset)
            case .sameEnds: end == nil ? ("$.dnd.start", object?["start"]?.offset) : ("$.dnd.end", end?.offset)
            }
        }
        let (path, byte) = parsed ?? ("$.dnd", 0)
        if case .sameEnds = fault {
            return BadRecord(.outOfRange, "start and end must differ", at: path, byte: byte ?? 0)
        }
        return BadRecord(.missing, BadRecord.missingWindow.why, at: path, byte: byte ?? 0)
    }
}

extension BadRecord {
    /// DND is on, without a window in the record and in the stored settings.
    public static let missingWindow = BadRecord(
        .missing, "DND needs a window, and neither the record nor the stored settings name it", at: "$.dnd")
}
