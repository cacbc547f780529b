// SPDX-License-Identifier: Apache-2.0
/// Message texts from words of a few languages: one to about sixty characters, one to four bytes each.
enum WorldText {
    private static let vocabularies: [(words: [String], blank: String)] = [
        (
            [
                "tomorrow", "the", "meeting", "is", "at", "seven", "bring", "your", "laptop", "please", "ok", "thanks",
                "where", "are", "you", "now", "on", "my", "way", "see", "soon", "lunch?", "great!", "later",
            ], " "
        ),
        (["明天", "早上", "九点", "老地方", "见", "记得", "带上", "合同", "和", "样品", "别迟到", "好的", "收到", "谢谢", "在吗", "马上到"], ""),
        (
            [
                "morgen", "früh", "im", "Büro", "bitte", "den", "Schlüssel", "mitbringen", "danke", "bis", "später",
                "schön",
            ], " "
        ),
        (["встреча", "завтра", "в", "семь", "хорошо", "спасибо", "где", "ты", "скоро", "буду"], " "),
        (["👍", "😀", "🎉", "⛰️", "👨‍👩‍👧", "🍜", "❤️"], ""),
    ]

    static func words(_ random: inout WorldRandom) -> String {
        // Mostly English, rarely emoji.
        let choice = [0, 0, 0, 0, 1, 1, 1, 2, 3, 4][random.below(10)]
        let (words, blank) = vocabularies[choice]
        let count = choice == 4 ? 1 + random.below(3) : 1 + random.below(12)
        var text = ""
        for index in 0..<count {
            if index > 0 { text += blank }
            text += words[random.below(words.count)]
        }
        return text
    }
}
