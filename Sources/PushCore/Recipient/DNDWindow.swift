// SPDX-License-Identifier: Apache-2.0
/// One DND window, on some days of the week (contract section 2, `settings`).
public struct DNDWindow: Sendable, Equatable {
    /// Minutes of the day, 0-1439; start > end wraps midnight. A window begins on its days and may end on the next one.
    public var start: Int
    public var end: Int
    public var days: Days

    /// The days of the week on which a window begins; bit 0 is Monday.
    public struct Days: OptionSet, Sendable, Equatable {
        public let rawValue: UInt8

        public init(rawValue: UInt8) { self.rawValue = rawValue & 0x7F }

        public static var all: Days { Days(rawValue: 0x7F) }

        /// From 1 (Monday) to 7; an empty set for any other number.
        public init(day: Int) { self.init(rawValue: (1...7).contains(day) ? 1 << UInt8(day - 1) : 0) }

        /// Numbers from 1 (Monday) to 7.
        public var numbers: [Int] { (1...7).filter { contains(Days(day: $0)) } }
    }

    /// What makes a change of the stored window wrong.
    public enum Fault: Sendable {
        case noStart, noEnd, sameEnds
    }

    public init(start: Int, end: Int, days: Days = .all) {
        self.start = start
        self.end = end
        self.days = days
    }

    /// How many minutes of the window are left at a minute of the week (0 is Monday 00:00); nil if it does not hold.
    ///
    /// The start belongs to the window, the end does not. Equal ends are refused on writing, and read as the whole day.
    public func left(weekMinute: Int) -> Int? {
        let start = Self.minute(start)
        let length = Self.minute(end) - start
        let minute = Self.minute(weekMinute)
        let since = (minute - start + 1440) % 1440
        let left = (length > 0 ? length : length + 1440) - since
        // Monday is day 1.
        let today = weekMinute / 1440 % 7 + 1
        let firstDay = minute >= start ? today : today == 1 ? 7 : today - 1
        return left > 0 && days.contains(Days(day: firstDay)) ? left : nil
    }

    /// A day has 1440 minutes, whatever a stored window says.
    private static func minute(_ number: Int) -> Int { (number % 1440 + 1440) % 1440 }
}
