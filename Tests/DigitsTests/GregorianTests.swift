// SPDX-License-Identifier: Apache-2.0
import Digits
import Support
import Testing

@Suite("The Gregorian calendar")
struct GregorianTests {
    @Test(arguments: [
        (1970, 1, 1, 0), (1970, 1, 2, 1), (1969, 12, 31, -1), (2000, 2, 29, 11_016), (2000, 3, 1, 11_017),
        (2026, 11, 22, 20_779), (1600, 1, 1, -135_140), (0, 3, 1, -719_468), (0, 1, 1, -719_528),
        (9999, 12, 31, 2_932_896),
    ])
    func aDateIsItsDaysSince1970AndBack(year: Int64, month: Int64, day: Int64, days: Int64) {
        #expect(Gregorian.daysSince1970(year: year, month: month, day: day) == days)
        #expect(Gregorian.date(daysSince1970: days) == (year, month, day))
    }

    @Test func dayAfterDayIsTheNextDateThroughAWholeEra() {
        var (year, month, day): (Int64, Int64, Int64) = (1899, 12, 31)
        var days = Gregorian.daysSince1970(year: year, month: month, day: day)
        while year < 2301 {
            days += 1
            day += 1
            if day > Gregorian.days(inMonth: month, of: year) { (month, day) = (month + 1, 1) }
            if month > 12 { (year, month) = (year + 1, 1) }
            guard Gregorian.daysSince1970(year: year, month: month, day: day) == days,
                Gregorian.date(daysSince1970: days) == (year, month, day)
            else {
                Issue.record("\(year)-\(month)-\(day) is not \(days)")
                return
            }
        }
    }

    @Test func daysFarFromNowAreTheirDatesDays() {
        var random = SeededGenerator(seed: .random(in: 0 ... .max))
        for _ in 0..<10_000 {
            let days = Int64.random(in: -1 << 40..<1 << 40, using: &random)
            let date = Gregorian.date(daysSince1970: days)
            #expect((1...12).contains(date.month), "seed \(random.seed)")
            #expect((1...Gregorian.days(inMonth: date.month, of: date.year)).contains(date.day), "seed \(random.seed)")
            #expect(
                Gregorian.daysSince1970(year: date.year, month: date.month, day: date.day) == days,
                "seed \(random.seed)")
        }
    }

    @Test(arguments: [(1900, false), (2000, true), (2023, false), (2024, true), (2100, false), (-4, true), (0, true)])
    func everyFourthYearIsLeapButThreeHundredthsOfFour(year: Int64, isLeap: Bool) {
        #expect(Gregorian.isLeap(year) == isLeap)
        #expect(Gregorian.days(inMonth: 2, of: year) == (isLeap ? 29 : 28))
    }

    @Test(arguments: [(7, 3, 2), (-7, 3, -3), (-6, 3, -2), (0, 3, 0), (-1, 400, -1)] as [(Int64, Int64, Int64)])
    func aQuotientIsRoundedDown(number: Int64, divisor: Int64, quotient: Int64) {
        #expect(number.flooringDivision(by: divisor) == quotient)
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (1_700_000_000_250, "2023-11-14T22:13:20.250Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"), (253_402_300_800_000, "253402300800000 ms"),
            (-1, "-1 ms"), (.max, "9223372036854775807 ms"), (.min, "-9223372036854775808 ms"),
        ] as [(Int64, String)])
    func anInstantIsReadableAndAnyNumberIsShown(ms: Int64, text: String) {
        #expect(InstantText.text(ms: ms) == text)
        if text.hasSuffix("Z") { #expect(InstantText.milliseconds(text) == ms) }
    }
}
