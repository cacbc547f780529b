// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import WorkerConfiguration

struct SystemZonesTests {
    let zones = SystemZones()

    @Test(
        arguments: [
            ("Asia/Shanghai", 1_763_600_000_000, 28_800),
            ("UTC", 1_763_600_000_000, 0),
            ("Asia/Kathmandu", 1_763_600_000_000, 20_700),
            ("America/Nuuk", 1_763_600_000_000, -7_200),
            // Summer time of 2025 began on 30 March and ended on 26 October, both at 01:00 UTC.
            ("Europe/Berlin", 1_743_296_399_999, 3_600),
            ("Europe/Berlin", 1_743_296_400_000, 7_200),
            ("Europe/Berlin", 1_761_440_399_999, 7_200),
            ("Europe/Berlin", 1_761_440_400_000, 3_600),
            // By the footer rule, which tells the years after the last transition: 27 March and 30 October 2050.
            ("Europe/Berlin", 2_531_955_599_999, 3_600),
            ("Europe/Berlin", 2_531_955_600_000, 7_200),
            ("Europe/Berlin", 2_550_704_399_999, 7_200),
            ("Europe/Berlin", 2_550_704_400_000, 3_600),
            // South of the equator summer wraps the year's end.
            ("Australia/Sydney", 2_524_608_000_000, 39_600),
            ("Australia/Sydney", 2_537_740_800_000, 36_000),
            // China had summer time once: 1 July 1990.
            ("Asia/Shanghai", 646_790_400_000, 32_400),
            ("Asia/Shanghai", -1, 28_800),
        ] as [(String, Int64, Int)])
    func knowsTheOffset(zone: String, ms: Int64, offset: Int) {
        #expect(zones.offset(of: zone, at: ms) == offset)
    }

    @Test(arguments: [
        "", "Mars/Base", "../../etc/passwd", "/etc/passwd", "Asia//Shanghai", "Asia/", ".", "Asia/./Shanghai",
        "Asia", "tzdata.zi", "posix/../UTC", "Asia/Shanghai\0", String(repeating: "a", count: 65),
    ])
    func knowsNoOther(zone: String) {
        #expect(zones.offset(of: zone, at: 0) == nil)
        #expect(zones.offset(of: zone, at: 0) == nil)
    }

    /// Users name them as they like.
    @Test func unknownNamesAreNotKept() {
        for number in 0..<3_000 {
            #expect(zones.offset(of: "Zone/\(number)", at: 0) == nil)
            #expect(zones.offset(of: "Zone/\(number)" + String(repeating: "\u{301}", count: 100), at: 0) == nil)
        }
        #expect(zones.keptCount == 0)
        #expect(zones.offset(of: "UTC", at: 0) == 0 && zones.offset(of: "UTC", at: 0) == 0)
        #expect(zones.keptCount == 1)
    }

    @Test func timesAtTheEndsOfTheWorldDoNotTrap() {
        for zone in ["Europe/Berlin", "Australia/Sydney", "Asia/Shanghai"] {
            for ms in [Int64.min, Int64.max, 253_402_300_799_999, -1] {
                #expect(zones.offset(of: zone, at: ms) != nil)
            }
        }
    }
}
