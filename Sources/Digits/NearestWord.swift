// SPDX-License-Identifier: Apache-2.0
/// Suggests the known word that the user probably meant.
public enum NearestWord {
    /// The nearest of `words`, if it is near enough: up to three letters different, fewer in a short word. Capitals and
    /// separators do not count, so that `msgId` is near `msg_id`.
    public static func to(_ word: String, among words: some Sequence<String>) -> String? {
        let plain = plain(word)
        let near = words.map { (word: $0, letters: distance(plain, Self.plain($0)), all: distance(word, $0)) }
            .min { ($0.letters, $0.all) < ($1.letters, $1.all) }
        // A word with only other letters is no likeness.
        guard let near, near.letters <= max(1, min(3, near.word.count / 3)), near.letters < max(1, plain.count) else {
            return nil
        }
        return near.word
    }

    private static func plain(_ word: String) -> String {
        String(word.prefix(64).lowercased().filter { !"_-. ".contains($0) })
    }

    /// The number of letters to change, insert, delete or swap with a neighbour. Compares the first 64 characters, so
    /// that no word takes long.
    private static func distance(_ one: String, _ other: String) -> Int {
        let one = Array(one.prefix(64)), other = Array(other.prefix(64))
        // The rows for the letters before the last two, before the last, and up to it.
        var (beforeLast, last, row) = ([Int](), [Int](), Array(0...other.count))
        for i in one.indices {
            (beforeLast, last) = (last, row)
            row[0] = i + 1
            for j in other.indices {
                row[j + 1] = min(last[j] + (one[i] == other[j] ? 0 : 1), row[j] + 1, last[j + 1] + 1)
                if i > 0, j > 0, one[i] == other[j - 1], one[i - 1] == other[j] {
                    row[j + 1] = min(row[j + 1], beforeLast[j - 1] + 1)
                }
            }
        }
        return row[other.count]
    }
}
