// SPDX-License-Identifier: Apache-2.0
/// A command: its rules, and what it does.
struct Command: Sendable {
    struct Flags: OptionSet, Sendable {
        let rawValue: Int

        static let write = Flags(rawValue: 1)
        /// Refused where memory is full.
        static let deniesOOM = Flags(rawValue: 2)
        /// Answered while the server loads its data.
        static let whileLoading = Flags(rawValue: 4)
        /// Answered by a replica without its master.
        static let whileStale = Flags(rawValue: 8)
        static let notInScripts = Flags(rawValue: 16)
        static let beforeLogin = Flags(rawValue: 32)
        static let script = Flags(rawValue: 64)
        /// Answered while a script runs for too long.
        static let whileBusy = Flags(rawValue: 128)

        static let grow: Flags = [.write, .deniesOOM]
        static let always: Flags = [.whileLoading, .whileStale]
    }

    /// Which words are keys.
    enum Keys: Sendable {
        case none
        case first
        case all
        /// Every second one.
        case pairs
        case firstTwo
        /// As many as this word says, behind it.
        case counted(at: Int)
        /// The destination, and as many as the third word says.
        case destinationAndCounted
        case sourceAndDestination
    }

    typealias Run = @Sendable (Server, Arguments) throws(RedisError) -> Reply

    let name: String
    /// The number of words; negative: at least so many.
    let arity: Int
    let flags: Flags
    let keys: Keys
    /// The second words that it takes, each with the number of words as in `arity`.
    let subcommands: [String: Int]
    let run: Run

    init(
        _ name: String, _ arity: Int, _ keys: Keys = .none, _ flags: Flags = [], subcommands: [String: Int] = [:],
        _ run: @escaping Run
    ) {
        self.name = name
        self.arity = arity
        self.keys = keys
        self.flags = flags
        self.subcommands = subcommands
        self.run = run
    }

    func takes(_ words: [Bytes]) -> Bool {
        let wanted = subcommand(words).flatMap { subcommands[$0] } ?? arity
        return wanted >= 0 ? words.count == wanted : words.count >= -wanted
    }

    /// The second word in lower case, of a command with subcommands.
    func subcommand(_ words: [Bytes]) -> String? {
        subcommands.isEmpty ? nil : words.dropFirst().first.map { utf8($0.lower) }
    }

    /// `cluster|slots`, as rights and errors name it.
    func fullName(_ words: [Bytes]) -> String {
        guard let word = subcommand(words), subcommands[word] != nil else { return name }
        return "\(name)|\(word)"
    }

    func keys(in words: [Bytes]) -> [Bytes] {
        func counted(_ index: Int) -> [Bytes] {
            guard words.indices.contains(index), let count = words[index].integer, count > 0 else { return [] }
            return Array(words.dropFirst(index + 1).prefix(Int(min(count, 1 << 20))))
        }
        switch keys {
        case .none: return []
        case .first: return Array(words.dropFirst().prefix(1))
        case .all: return Array(words.dropFirst())
        case .pairs: return stride(from: 1, to: words.count, by: 2).map { words[$0] }
        case .firstTwo, .sourceAndDestination: return Array(words.dropFirst().prefix(2))
        case .counted(let index): return counted(index)
        case .destinationAndCounted: return words.dropFirst().prefix(1) + counted(2)
        }
    }
}
