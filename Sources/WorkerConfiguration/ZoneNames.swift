// SPDX-License-Identifier: Apache-2.0
import Telemetry

/// The names of time zones: legacy aliases of the tz database, and the nearest name to a misspelt one.
struct ZoneNames {
    /// As the tz database lists them, each with the part behind the last slash.
    private let names: [(whole: [UInt8], city: [UInt8])]

    /// - Parameter directory: That of the system's zones; the names are read from one of its lists.
    init(directory: String) {
        var found: [String] = []
        if case .bytes(let bytes) = SmallFile.read("\(directory)/tzdata.zi", limit: 1 << 20) {
            found = Self.names(bytes, column: 1) { $0.first == "Z" } + Self.names(bytes, column: 2) { $0.first == "L" }
        } else if case .bytes(let bytes) = SmallFile.read("\(directory)/zone.tab", limit: 1 << 20) {
            found = Self.names(bytes, column: 2) { $0.first?.first != "#" }
        }
        if found.isEmpty { found = Array(Set(Self.aliases.values)) }
        names = found.sorted().map { name in
            (Array(name.utf8), Array(name.utf8.split(separator: UInt8(ascii: "/")).last ?? []))
        }
    }

    private static func names(
        _ bytes: [UInt8], column: Int, _ isWanted: ([Substring]) -> Bool
    ) -> [String] {
        String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap { line in
            let words = line.split(maxSplits: column + 1) { $0 == " " || $0 == "\t" }
            return words.count > column && isWanted(words) ? String(words[column]) : nil
        }
    }

    static func target(ofAlias name: String) -> String? { aliases[name] }

    /// The name that differs in the fewest letters, at most three and a third of its length; the case of a letter does not
    /// count. A city alone is near to its zone.
    func nearest(to zone: String) -> String? {
        let wanted = Array(zone.utf8.prefix(64))
        var best: (name: [UInt8], distance: Int)?
        for name in names {
            let most = min(3, wanted.count / 3, (best?.distance ?? .max) - 1)
            if let distance = Self.distance(wanted, name.whole, atMost: most) {
                best = (name.whole, distance)
            } else if let distance = Self.distance(wanted, name.city, atMost: most - 1) {
                best = (name.whole, distance + 1)
            }
        }
        return best.map { String(decoding: $0.name, as: UTF8.self) }
    }

    /// Insertions, deletions and replacements that make one text of the other; nil if more than `most`.
    private static func distance(_ one: [UInt8], _ other: [UInt8], atMost most: Int) -> Int? {
        guard most >= 0, abs(one.count - other.count) <= most else { return nil }
        var row = Array(0...other.count)
        for (index, byte) in one.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            var least = row[0]
            for (column, letter) in other.enumerated() {
                let replaced = diagonal + (folded(byte) == folded(letter) ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(replaced, diagonal + 1, row[column] + 1)
                least = min(least, row[column + 1])
            }
            if least > most { return nil }
        }
        return row[other.count] <= most ? row[other.count] : nil
    }

    private static func folded(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }

    /// Alias to zone, from the tz database's file `backward` (2025b).
    private static let aliases: [String: String] = {
        var aliases: [String: String] = [:]
        for line in table.split(separator: "\n") {
            let names = line.split(separator: " ")
            guard let zone = names.first else { continue }
            for alias in names.dropFirst() { aliases[String(alias)] = String(zone) }
        }
        return aliases
    }()

    /// A zone, and behind it its aliases.
    private static let table = """
        Africa/Abidjan Africa/Timbuktu Iceland
        Africa/Cairo Egypt
        Africa/Nairobi Africa/Asmera
        Africa/Tripoli Libya
        America/Adak America/Atka US/Aleutian
        America/Anchorage US/Alaska
        America/Argentina/Buenos_Aires America/Buenos_Aires
        America/Argentina/Catamarca America/Argentina/ComodRivadavia America/Catamarca
        America/Argentina/Cordoba America/Cordoba America/Rosario
        America/Argentina/Jujuy America/Jujuy
        America/Argentina/Mendoza America/Mendoza
        America/Chicago CST6CDT US/Central
        America/Denver America/Shiprock MST7MDT Navajo US/Mountain
        America/Detroit US/Michigan
        America/Edmonton America/Yellowknife Canada/Mountain
        America/Halifax Canada/Atlantic
        America/Havana Cuba
        America/Indiana/Indianapolis America/Fort_Wayne America/Indianapolis US/East-Indiana
        America/Indiana/Knox America/Knox_IN US/Indiana-Starke
        America/Iqaluit America/Pangnirtung
        America/Jamaica Jamaica
        America/Kentucky/Louisville America/Louisville
        America/Los_Angeles PST8PDT US/Pacific US/Pacific-New
        America/Manaus Brazil/West
        America/Mazatlan Mexico/BajaSur
        America/Mexico_City Mexico/General
        America/New_York EST5EDT US/Eastern
        America/Noronha Brazil/DeNoronha
        America/Nuuk America/Godthab
        America/Panama America/Coral_Harbour EST
        America/Phoenix MST US/Arizona
        America/Puerto_Rico America/Kralendijk America/Lower_Princes America/Marigot America/St_Barthelemy America/Virgin
        America/Regina Canada/Saskatchewan
        America/Rio_Branco America/Porto_Acre Brazil/Acre
        America/Santiago Chile/Continental
        America/Sao_Paulo Brazil/East
        America/St_Johns Canada/Newfoundland
        America/Tijuana America/Ensenada America/Santa_Isabel Mexico/BajaNorte
        America/Toronto America/Montreal America/Nipigon America/Thunder_Bay Canada/Eastern
        America/Vancouver Canada/Pacific
        America/Whitehorse Canada/Yukon
        America/Winnipeg America/Rainy_River Canada/Central
        Asia/Ashgabat Asia/Ashkhabad
        Asia/Dhaka Asia/Dacca
        Asia/Ho_Chi_Minh Asia/Saigon
        Asia/Hong_Kong Hongkong
        Asia/Jerusalem Asia/Tel_Aviv Israel
        Asia/Kathmandu Asia/Katmandu
        Asia/Kolkata Asia/Calcutta
        Asia/Macau Asia/Macao
        Asia/Makassar Asia/Ujung_Pandang
        Asia/Nicosia Europe/Nicosia
        Asia/Seoul ROK
        Asia/Shanghai Asia/Chongqing Asia/Chungking Asia/Harbin PRC
        Asia/Singapore Singapore
        Asia/Taipei ROC
        Asia/Tehran Iran
        Asia/Thimphu Asia/Thimbu
        Asia/Tokyo Japan
        Asia/Ulaanbaatar Asia/Choibalsan Asia/Ulan_Bator
        Asia/Urumqi Asia/Kashgar
        Asia/Yangon Asia/Rangoon
        Atlantic/Faroe Atlantic/Faeroe
        Australia/Adelaide Australia/South
        Australia/Brisbane Australia/Queensland
        Australia/Broken_Hill Australia/Yancowinna
        Australia/Darwin Australia/North
        Australia/Hobart Australia/Currie Australia/Tasmania
        Australia/Lord_Howe Australia/LHI
        Australia/Melbourne Australia/Victoria
        Australia/Perth Australia/West
        Australia/Sydney Australia/ACT Australia/Canberra Australia/NSW
        Etc/GMT Etc/GMT+0 Etc/GMT-0 Etc/GMT0 Etc/Greenwich GMT GMT+0 GMT-0 GMT0 Greenwich
        Etc/UTC Etc/UCT Etc/Universal Etc/Zulu UCT UTC Universal Zulu
        Europe/Athens EET
        Europe/Belgrade Europe/Podgorica
        Europe/Berlin Arctic/Longyearbyen Atlantic/Jan_Mayen
        Europe/Brussels CET MET
        Europe/Chisinau Europe/Tiraspol
        Europe/Dublin Eire
        Europe/Helsinki Europe/Mariehamn
        Europe/Istanbul Asia/Istanbul Turkey
        Europe/Kyiv Europe/Kiev Europe/Uzhgorod Europe/Zaporozhye
        Europe/Lisbon Portugal WET
        Europe/London Europe/Belfast GB GB-Eire
        Europe/Moscow W-SU
        Europe/Prague Europe/Bratislava
        Europe/Rome Europe/San_Marino Europe/Vatican
        Europe/Warsaw Poland
        Europe/Zurich Europe/Busingen
        Pacific/Auckland Antarctica/South_Pole NZ
        Pacific/Chatham NZ-CHAT
        Pacific/Easter Chile/EasterIsland
        Pacific/Guadalcanal Pacific/Pohnpei Pacific/Ponape
        Pacific/Honolulu HST Pacific/Johnston US/Hawaii
        Pacific/Kanton Pacific/Enderbury
        Pacific/Kwajalein Kwajalein
        Pacific/Pago_Pago Pacific/Samoa US/Samoa
        Pacific/Port_Moresby Pacific/Chuuk Pacific/Truk Pacific/Yap
        """
}
