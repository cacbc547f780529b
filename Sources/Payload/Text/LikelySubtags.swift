// SPDX-License-Identifier: Apache-2.0
import Digits

/// The most likely script and region of a language (Unicode CLDR, likely subtags), for the languages of phones.
struct LikelySubtags {
    /// Folded, as all tags here.
    let script: String
    let region: String
    /// Regions that write the language in another script.
    private let scripts: [(region: String, script: String)]
    /// Other names of the language, and one that its readers read too.
    let others: [String]

    /// The script of the language there, if it is another one than the usual.
    func script(in region: String) -> String? { scripts.first { $0.region.isSame(as: region) }?.script }

    /// The region that most likely writes the language in that script.
    func region(of script: String) -> String? { scripts.first { $0.script.isSame(as: script) }?.region }

    static func of(_ language: String) -> LikelySubtags? { table[language] }

    private static let table: [String: LikelySubtags] = {
        var table: [String: LikelySubtags] = [:]
        for line in lines.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count >= 3 else { continue }
            var scripts: [(region: String, script: String)] = []
            var others: [String] = []
            for word in words.dropFirst(3) {
                let parts = word.split(separator: "=")
                if parts.count == 2 {
                    scripts.append((String(parts[0]), String(parts[1])))
                } else {
                    others.append(String(word))
                }
            }
            table[String(words[0])] = LikelySubtags(
                script: String(words[1]), region: String(words[2]), scripts: scripts, others: others)
        }
        return table
    }()

    /// Language, script, region; then `region=script` for another script there, or another language.
    private static let lines = """
        zh hans cn tw=hant hk=hant mo=hant
        yue hant hk cn=hans zh-hant zh
        sr cyrl rs me=latn ro=latn tr=latn sh sr-latn
        sh latn rs sr-latn sr
        bs latn ba hr
        hr latn hr
        no latn no nb nn
        nb latn no no nn
        nn latn no no nb
        pt latn br
        en latn us
        es latn es
        fr latn fr
        de latn de
        it latn it
        nl latn nl
        ja jpan jp
        ko kore kr
        ru cyrl ru
        uk cyrl ua
        be cyrl by
        bg cyrl bg
        mk cyrl mk
        pl latn pl
        cs latn cz
        sk latn sk
        sl latn si
        hu latn hu
        ro latn ro mo
        mo latn md ro
        sq latn al
        el grek gr
        tr latn tr
        sv latn se
        da latn dk
        fi latn fi
        et latn ee
        lv latn lv
        lt latn lt
        is latn is
        ga latn ie
        cy latn gb
        ca latn es
        eu latn es
        gl latn es
        mt latn mt
        ar arab eg
        fa arab ir
        ur arab pk
        he hebr il iw
        iw hebr il he
        hi deva in
        bn beng bd
        mr deva in
        ne deva np
        gu gujr in
        pa guru in pk=arab
        ta taml in
        te telu in
        kn knda in
        ml mlym in
        si sinh lk
        th thai th
        lo laoo la
        km khmr kh
        my mymr mm
        vi latn vn
        id latn id in
        in latn id id
        ms latn my
        fil latn ph tl
        tl latn ph fil
        jv latn id jw
        jw latn id jv
        ka geor ge
        hy armn am
        az latn az iq=arab ru=cyrl
        kk cyrl kz cn=arab
        ky cyrl kg cn=arab
        uz latn uz af=arab cn=cyrl
        tg cyrl tj pk=arab
        tk latn tm
        mn cyrl mn cn=mong
        bo tibt cn
        ug arab cn kz=cyrl
        am ethi et
        sw latn tz
        zu latn za
        af latn za
        yi hebr ua ji
        ji hebr ua yi
        """
}
