// SPDX-License-Identifier: Apache-2.0
internal import Digits

/// The rule of a TZif footer, such as `CET-1CEST,M3.5.0,M10.5.0/3` (POSIX `TZ`, with RFC 9636's wider hours).
struct PosixZone: Sendable {
    private let standard: Int
    private let daylight: Daylight?

    private struct Daylight {
        let offset: Int
        let start: Change
        let end: Change
    }

    /// A day of the year and the local second of that day at which the change happens.
    private struct Change {
        let day: Day
        let second: Int

        enum Day {
            /// `Jn`: 1-365; 29 February is never counted.
            case julian(Int)
            /// `n`: 0-365; 29 February is counted.
            case ordinal(Int)
            /// `Mm.w.d`: weekday d (0 is Sunday) of week w of month m; week 5 is the last.
            case weekday(month: Int, week: Int, day: Int)
        }
    }

    /// - Returns: nil without a valid rule; the last transition's offset then remains.
    init?(_ text: some Sequence<UInt8>) {
        var scanner = Scanner(rest: Array(text)[...])
        guard scanner.name(), let west = scanner.time(hours: 24) else { return nil }
        standard = -west
        if scanner.isAtEnd {
            daylight = nil
            return
        }
        guard scanner.name() else { return nil }
        var offset = standard + 3600
        if scanner.peek != UInt8(ascii: ",") {
            guard let west = scanner.time(hours: 24) else { return nil }
            offset = -west
        }
        guard scanner.eat(","), let start = scanner.change(), scanner.eat(","), let end = scanner.change(),
            scanner.isAtEnd
        else { return nil }
        daylight = Daylight(offset: offset, start: start, end: end)
    }

    func offset(at seconds: Int64) -> Int {
        guard let daylight, (-1 << 50..<1 << 50).contains(seconds) else { return standard }
        let day = (seconds + Int64(standard)).flooringDivision(by: 86_400)
        let year = Gregorian.date(daysSince1970: day).year
        // A change is given in the time that it ends.
        let start = Self.moment(daylight.start, in: year) - Int64(standard)
        let end = Self.moment(daylight.end, in: year) - Int64(daylight.offset)
        let isDaylight = start < end ? (start <= seconds && seconds < end) : !(end <= seconds && seconds < start)
        return isDaylight ? daylight.offset : standard
    }

    /// Local seconds since 1970 of a change.
    private static func moment(_ change: Change, in year: Int64) -> Int64 {
        let newYear = Gregorian.daysSince1970(year: year, month: 1, day: 1)
        let day: Int64
        switch change.day {
        case .julian(let number):
            let leap = Gregorian.isLeap(year) && number >= 60 ? 1 : 0
            day = newYear + Int64(number - 1 + leap)
        case .ordinal(let number):
            day = newYear + Int64(number)
        case .weekday(let month, let week, let weekday):
            let first = Gregorian.daysSince1970(year: year, month: Int64(month), day: 1)
            // 1 January 1970 was a Thursday (4).
            let firstWeekday = (first + 4) - (first + 4).flooringDivision(by: 7) * 7
            var found = first + (Int64(weekday) - firstWeekday + 7) % 7 + Int64(week - 1) * 7
            let next = first + Gregorian.days(inMonth: Int64(month), of: year)
            while found >= next { found -= 7 }
            day = found
        }
        return day * 86_400 + Int64(change.second)
    }

    private struct Scanner {
        var rest: ArraySlice<UInt8>

        var isAtEnd: Bool { rest.isEmpty }
        var peek: UInt8? { rest.first }

        mutating func eat(_ character: Unicode.Scalar) -> Bool {
            guard rest.first == UInt8(ascii: character) else { return false }
            rest = rest.dropFirst()
            return true
        }

        /// `CET` or `<+0330>`.
        mutating func name() -> Bool {
            if eat("<") {
                guard let close = rest.firstIndex(of: UInt8(ascii: ">")) else { return false }
                rest = rest[rest.index(after: close)...]
                return true
            }
            let letters = rest.prefix { $0 | 0x20 >= UInt8(ascii: "a") && $0 | 0x20 <= UInt8(ascii: "z") }
            rest = rest.dropFirst(letters.count)
            return letters.count >= 3
        }

        mutating func number(upTo limit: Int) -> Int? {
            var value = 0
            var any = false
            while let byte = rest.first, byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") {
                value = value * 10 + Int(byte - UInt8(ascii: "0"))
                guard value <= limit else { return nil }
                any = true
                rest = rest.dropFirst()
            }
            return any ? value : nil
        }

        /// `[+-]h[:mm[:ss]]` in seconds.
        mutating func time(hours: Int) -> Int? {
            let sign = eat("-") ? -1 : 1
            if sign == 1 { _ = eat("+") }
            guard let hour = number(upTo: hours) else { return nil }
            var seconds = hour * 3600
            if eat(":") {
                guard let minute = number(upTo: 59) else { return nil }
                seconds += minute * 60
                if eat(":") {
                    guard let second = number(upTo: 59) else { return nil }
                    seconds += second
                }
            }
            return sign * seconds
        }

        mutating func change() -> Change? {
            let day: Change.Day
            if eat("M") {
                guard let month = number(upTo: 12), month >= 1, eat("."), let week = number(upTo: 5), week >= 1,
                    eat("."),
                    let weekday = number(upTo: 6)
                else { return nil }
                day = .weekday(month: month, week: week, day: weekday)
            } else if eat("J") {
                guard let number = number(upTo: 365), number >= 1 else { return nil }
                day = .julian(number)
            } else {
                guard let number = number(upTo: 365) else { return nil }
                day = .ordinal(number)
            }
            guard eat("/") else { return Change(day: day, second: 7_200) }
            guard let second = time(hours: 167) else { return nil }
            return Change(day: day, second: second)
        }
    }
}
