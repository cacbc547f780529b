// SPDX-License-Identifier: Apache-2.0
/// The flags of a script's first line, `#!lua flags=no-writes,allow-oom`.
struct ScriptHead: Equatable {
    struct Flags: OptionSet {
        let rawValue: Int

        static let noWrites = Flags(rawValue: 1)
        static let allowOOM = Flags(rawValue: 2)
        static let allowStale = Flags(rawValue: 4)
        static let noCluster = Flags(rawValue: 8)
        static let allowCrossSlot = Flags(rawValue: 16)
        /// Without a first line of this kind: older rules.
        static let isOld = Flags(rawValue: 32)
    }

    let flags: Flags
    /// Bytes of the line without its end.
    let byteCount: Int

    init(_ body: Bytes) throws(RedisError) {
        guard body.starts(with: Bytes("#!")) else {
            flags = .isOld
            byteCount = 0
            return
        }
        guard let end = body.firstIndex(of: 10) else { throw RedisError("ERR Invalid script shebang") }
        byteCount = end
        let parts = utf8(body[..<end]).split(separator: " ").map { String($0) }
        guard parts.first == "#!lua" else {
            throw RedisError("ERR Unexpected engine in script shebang: \(parts.first ?? "")")
        }
        var found: Flags = []
        for part in parts.dropFirst() {
            guard part.hasPrefix("flags=") else { throw RedisError("ERR Unknown lua shebang option: \(part)") }
            for flag in part.dropFirst("flags=".count).split(separator: ",") {
                switch flag {
                case "no-writes": found.insert(.noWrites)
                case "allow-oom": found.insert(.allowOOM)
                case "allow-stale": found.insert(.allowStale)
                case "no-cluster": found.insert(.noCluster)
                case "allow-cross-slot-keys": found.insert(.allowCrossSlot)
                default: throw RedisError("ERR Unexpected flag in script shebang: \(flag)")
                }
            }
        }
        flags = found
    }

    /// The head of the script that an EVAL or EVALSHA names; nil where its rules are those of the command.
    static func of(_ command: Command, _ words: [Bytes], _ scripts: ScriptLibrary) -> ScriptHead? {
        let word = words.count > 1 ? words[1] : []
        let head: ScriptHead?
        if command.name.hasPrefix("evalsha") {
            head = scripts.script(word.lower)?.head
        } else {
            do throws(RedisError) { head = try ScriptHead(word) } catch { head = nil }
        }
        return head.flatMap { $0.flags.contains(.isOld) ? nil : $0 }
    }

    func commandFlags(_ flags: Command.Flags) -> Command.Flags {
        var result = flags.subtracting([.write, .deniesOOM, .whileStale])
        if self.flags.isDisjoint(with: [.allowOOM, .noWrites]) { result.insert(.deniesOOM) }
        if !self.flags.contains(.noWrites) { result.insert(.write) }
        if self.flags.contains(.allowStale) { result.insert(.whileStale) }
        return result
    }
}
