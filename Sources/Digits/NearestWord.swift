/// The word that somebody may have meant who wrote one that is not known.
public enum NearestWord {
    /// The nearest of `words`, where it is near enough to be meant: some three letters off, fewer in a short word.
    public static func to(_ word: String, among words: some Sequence<String>) -> String? {
        let near = words.map { (word: $0, distance: distance(word, $0)) }.min { $0.distance < $1.distance }
        guard let near, near.distance <= max(1, min(3, near.word.count / 3)) else { return nil }
        return near.word
    }

    /// How many letters must be changed, put in, left out, or swapped with their neighbour. Of the first 64 characters: no
    /// word is slow to refuse.
    private static func distance(_ one: String, _ other: String) -> Int {
        let one = Array(one.prefix(64)), other = Array(other.prefix(64))
        // Of the letters before the last two, before the last, and up to it.
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
