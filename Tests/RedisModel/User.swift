// SPDX-License-Identifier: Apache-2.0
/// A user of a server: passwords, commands and keys that he may use.
struct User {
    private struct KeyRule {
        let pattern: Bytes
        let reads: Bool
        let writes: Bool
    }

    let name: String
    private var isOn = false
    private var needsPassword = true
    private var passwords: [Bytes] = []
    /// Rules in order; the last one that fits decides. `*` is all.
    private var commandRules: [(isAllowed: Bool, name: String)] = []
    private var keyRules: [KeyRule] = []

    init(_ name: String) { self.name = name }

    /// The user of connections without a login.
    static func open(password: String?) -> User {
        var user = User("default")
        for rule in ["on", "nopass", "~*", "+@all"] { _ = user.apply(rule) }
        if let password { _ = user.apply(">" + password) }
        return user
    }

    var asksForPassword: Bool { needsPassword || !isOn }

    func accepts(_ password: Bytes) -> Bool { isOn && (!needsPassword || passwords.contains(password)) }

    /// One rule of ACL SETUSER. Returns whether the model knows it.
    mutating func apply(_ rule: String) -> Bool {
        switch rule.lowercased() {
        case "on": isOn = true
        case "off": isOn = false
        case "nopass":
            needsPassword = false
            passwords = []
        case "resetpass":
            needsPassword = true
            passwords = []
        case "allkeys": keyRules = [KeyRule(pattern: [42], reads: true, writes: true)]
        case "resetkeys": keyRules = []
        case "resetchannels", "allchannels", "sanitize-payload", "&*": break
        case "allcommands", "+@all": commandRules = [(true, "*")]
        case "nocommands", "-@all": commandRules = []
        case "reset": self = User(name)
        default: return applySigned(rule)
        }
        return true
    }

    private mutating func applySigned(_ rule: String) -> Bool {
        let rest = String(rule.dropFirst())
        switch rule.first {
        case ">":
            needsPassword = false
            passwords.append(Bytes(rest))
            needsPassword = true
        case "~": keyRules.append(KeyRule(pattern: Bytes(rest), reads: true, writes: true))
        case "%":
            let parts = rest.split(separator: "~", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { return false }
            let mode = parts[0].uppercased()
            keyRules.append(
                KeyRule(pattern: Bytes(String(parts[1])), reads: mode.contains("R"), writes: mode.contains("W")))
        case "+", "-":
            guard !rest.hasPrefix("@") else { return false }
            commandRules.append((rule.first == "+", rest.lowercased()))
        default: return false
        }
        return true
    }

    func mayRun(_ command: Command, _ words: [Bytes]) -> Bool {
        if commandRules.count == 1, commandRules[0].isAllowed, commandRules[0].name == "*" { return true }
        let full = command.fullName(words)
        return commandRules.last { $0.name == "*" || $0.name == command.name || $0.name == full }?.isAllowed ?? false
    }

    func mayUse(_ keys: [Bytes], writes: Bool) -> Bool {
        if keyRules.contains(where: { $0.pattern == [42] && $0.reads && $0.writes }) { return true }
        return keys.allSatisfy { key in
            keyRules.contains { (writes ? $0.writes : $0.reads) && Glob.matches($0.pattern, key) }
        }
    }
}
