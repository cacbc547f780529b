// SPDX-License-Identifier: Apache-2.0
/// A command's words, its name first. Words that are not there are empty.
struct Arguments {
    let words: [Bytes]

    var count: Int { words.count }

    subscript(_ index: Int) -> Bytes { words.indices.contains(index) ? words[index] : [] }

    func from(_ index: Int) -> ArraySlice<Bytes> { words.dropFirst(index) }

    func upper(_ index: Int) -> String { self[index].upper }

    func integer(_ index: Int) throws(RedisError) -> Int64 {
        guard let number = self[index].integer else { throw .notInteger }
        return number
    }

    func int(_ index: Int) throws(RedisError) -> Int { Int(try integer(index)) }

    func double(_ index: Int) throws(RedisError) -> Double {
        guard let number = self[index].double else { throw .notFloat }
        return number
    }
}
