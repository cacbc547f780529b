// SPDX-License-Identifier: Apache-2.0
import PushCore

/// Settings as single fields of the user's hash, each with the time of the record that set it: `<sent_ms> <value>`.
struct SettingsText {
    private(set) var plain = UserSettings()
    private var isOn = false
    private var start: Int?
    private var end: Int?
    private var days = DNDWindow.Days.all
    private var windows: [DNDWindow] = []
    private var zone: String?
    private var level = 5

    /// Unset values have their defaults. A DND window exists once it has a start and an end.
    var settings: UserSettings {
        var windows = windows
        if windows.isEmpty {
            guard let start, let end else { return plain }
            windows = [DNDWindow(start: start, end: end, days: days)]
        }
        var settings = plain
        settings.dnd = UserSettings.DoNotDisturb(on: isOn, windows: windows, zone: zone, level: level)
        return settings
    }

    mutating func take(field: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        guard field.count == 2 else { return }
        var dated = CompactText(value)
        guard dated.number() != nil else { return }
        guard let text = dated.text(until: 0) else { return }
        if field[0] == UInt8(ascii: "d"), field[1] == UInt8(ascii: "w") { return windows = Self.windows(text) }
        guard text.utf8.count <= InputLimit.word else { return }
        switch (field[0], field[1]) {
        case (UInt8(ascii: "d"), UInt8(ascii: "n")): isOn = text == "1"
        case (UInt8(ascii: "d"), UInt8(ascii: "s")): start = Self.minute(text)
        case (UInt8(ascii: "d"), UInt8(ascii: "e")): end = Self.minute(text)
        case (UInt8(ascii: "d"), UInt8(ascii: "d")): days = Self.days(text)
        case (UInt8(ascii: "d"), UInt8(ascii: "z")): zone = text.isEmpty ? nil : text
        case (UInt8(ascii: "d"), UInt8(ascii: "l")): level = text == "1" ? 1 : 5
        case (UInt8(ascii: "s"), UInt8(ascii: "d")): plain.showDetail = text != "0"
        case (UInt8(ascii: "p"), UInt8(ascii: "d")): plain.pushWhenDesktopOnline = text != "0"
        case (UInt8(ascii: "h"), UInt8(ascii: "o")): plain.holdSeconds = Int16(min(max(0, Int(text) ?? 0), 600))
        case (UInt8(ascii: "l"), UInt8(ascii: "a")): plain.language = text.isEmpty ? nil : text
        case (UInt8(ascii: "p"), UInt8(ascii: "h")):
            plain.phone = text.isEmpty || text.utf8.count > InputLimit.phone ? nil : text
        case (UInt8(ascii: "s"), UInt8(ascii: "n")): plain.snoozeUntilMs = max(0, Int64(text) ?? 0)
        case (UInt8(ascii: "l"), let letter):
            guard let type = Self.levelFields.first(where: { $0.letter == letter })?.type else { return }
            plain.levels[type] = Int(text).flatMap { MuteLevel(rawValue: $0) }
        default: break
        }
    }

    /// The second letter of each level's field, behind `l`.
    private static let levelFields: [(letter: UInt8, type: Conversation.Kind)] = [
        (UInt8(ascii: "p"), .p2p), (UInt8(ascii: "g"), .group), (UInt8(ascii: "u"), .ultra),
        (UInt8(ascii: "s"), .system),
        (UInt8(ascii: "c"), .custom),
    ]

    /// A minute of the day, 0-1439.
    private static func minute(_ text: String) -> Int? {
        Int(text).flatMap { (0..<1440).contains($0) ? $0 : nil }
    }

    /// A set of days as a number; no text is every day.
    private static func days(_ text: String) -> DNDWindow.Days {
        UInt8(text).map { DNDWindow.Days(rawValue: $0) } ?? .all
    }

    /// `start-end-days`, with commas between the windows; a malformed one is left out.
    private static func windows(_ text: String) -> [DNDWindow] {
        text.split(separator: ",").prefix(InputLimit.windows).compactMap { part in
            let numbers = part.split(separator: "-")
            guard numbers.count == 3, let start = minute(String(numbers[0])), let end = minute(String(numbers[1]))
            else {
                return nil
            }
            return DNDWindow(start: start, end: end, days: days(String(numbers[2])))
        }
    }

    private static func text(_ windows: [DNDWindow]) -> String {
        windows.map { "\($0.start)-\($0.end)-\($0.days.rawValue)" }.joined(separator: ",")
    }

    /// Field and value of all that was given. Each form of the windows empties the fields of the other one.
    static func pairs(_ change: UserState.SettingsChange) -> [(String, String)] {
        var pairs: [(String, String)] = []
        func add(_ field: String, _ value: String?) {
            if let value { pairs.append((field, value)) }
        }
        add("dn", change.dndOn.map { $0 ? "1" : "0" })
        if let windows = change.dndWindows {
            pairs += [("dw", text(windows)), ("ds", ""), ("de", ""), ("dd", "")]
        } else if change.dndStart != nil || change.dndEnd != nil || change.dndDays != nil {
            add("ds", change.dndStart.map { String($0) })
            add("de", change.dndEnd.map { String($0) })
            add("dd", change.dndDays.map { String($0.rawValue) })
            add("dw", "")
        }
        add("dz", change.dndZone)
        add("dl", change.dndLevel.map { String($0) })
        add("sd", change.showDetail.map { $0 ? "1" : "0" })
        add("pd", change.pushWhenDesktopOnline.map { $0 ? "1" : "0" })
        add("ho", change.holdSeconds.map { String($0) })
        add("la", change.language)
        add("ph", change.phone)
        add("sn", change.snoozeUntilMs.map { String($0) })
        for (letter, type) in levelFields {
            add("l\(Character(UnicodeScalar(letter)))", change.levels[type].map { String($0.rawValue) })
        }
        return pairs
    }
}
