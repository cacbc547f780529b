// SPDX-License-Identifier: Apache-2.0
/// The scripts of a client. A connection has a bit for each that its server has loaded.
struct ScriptTable {
    private var scripts: [RedisScript] = []

    static let max = 64

    /// The script's index; `max` beyond the table's end: such a script is always sent in full.
    mutating func index(of script: RedisScript) -> Int {
        for (index, known) in scripts.enumerated() where known === script { return index }
        guard scripts.count < Self.max else { return Self.max }
        scripts.append(script)
        return scripts.count - 1
    }

    subscript(index: Int) -> RedisScript? { index < scripts.count ? scripts[index] : nil }
}
