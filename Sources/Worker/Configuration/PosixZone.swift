/// The rule of a TZif footer, such as `CET-1CEST,M3.5.0,M10.5.0/3` (POSIX `TZ`, with RFC 9636's wider hours).
struct PosixZone: Sendable {
    private let standard: Int
    private let daylight: Daylight?

    private struct Daylight {
        let offset: Int
        let start: Change
        let end: Change
    }

    /// A day of the year and the local second of that day when the change happens.
    private struct Change {
        let day: Day
        let second: Int

        enum Day {
            /// `Jn`: 1-365, 29 February is never counted.
            case julian(Int)
            /// `n`: 0-365, it is.
            case ordinal(Int)
            /// `Mm.w.d`: weekday d (0 Sunday) of week w of month m; week 5 is the last.
            case weekday(month: Int, week: Int, day: Int)
        }
    }

    /// Nil where there is no rule that is understood; then the last transition's offset stays.
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
        let year = Calendar.year(of: (seconds + Int64(standard)).flooringDivision(by: 86_400))
        // A change is told in the time that ends with it.
        let start = Self.moment(daylight.start, in: year) - Int64(standard)
        let end = Self.moment(daylight.end, in: year) - Int64(daylight.offset)
        let isDaylight = start < end ? (start <= seconds && seconds < end) : !(end <= seconds && seconds < start)
        return isDaylight ? daylight.offset : standard
    }

    /// Local seconds since 1970 of a change.
    private static func moment(_ change: Change, in year: Int64) -> Int64 {
        let day: Int64
        switch change.day {
        case .julian(let number):
            let leap = Calendar.isLeap(year) && number >= 60 ? 1 : 0
            day = Calendar.days(year, 1, 1) + Int64(number - 1 + leap)
        case .ordinal(let number):
            day = Calendar.days(year, 1, 1) + Int64(number)
        case .weekday(let month, let week, let weekday):
            let first = Calendar.days(year, month, 1)
            // 1 January 1970 was a Thursday (4).
            let firstWeekday = (first + 4) - (first + 4).flooringDivision(by: 7) * 7
            var found = first + (Int64(weekday) - firstWeekday + 7) % 7 + Int64(week - 1) * 7
            let next = month == 12 ? Calendar.days(year + 1, 1, 1) : Calendar.days(year, month + 1, 1)
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

/// The proleptic Gregorian calendar in days since 1970.
private enum Calendar {
    static func isLeap(_ year: Int64) -> Bool {
        year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    }

    /// Days from 1970 to a date. Years are counted from March, so that the leap day ends them; 400 years are one era.
    static func days(_ year: Int64, _ month: Int, _ day: Int) -> Int64 {
        let shifted = month > 2 ? year : year - 1
        let era = shifted.flooringDivision(by: 400)
        let yearOfEra = shifted - era * 400
        let monthFromMarch = Int64(month > 2 ? month - 3 : month + 9)
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + Int64(day) - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    static func year(of day: Int64) -> Int64 {
        // An estimate by the mean year, then mended; it is off by one at most.
        var year = 1970 + (day * 400).flooringDivision(by: 146_097)
        while days(year, 1, 1) > day { year -= 1 }
        while days(year + 1, 1, 1) <= day { year += 1 }
        return year
    }
}

extension Int64 {
    fileprivate func flooringDivision(by divisor: Int64) -> Int64 {
        let quotient = self / divisor
        return self % divisor < 0 ? quotient - 1 : quotient
    }
}
