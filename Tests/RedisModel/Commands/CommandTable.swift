// SPDX-License-Identifier: Apache-2.0
/// All commands by name.
enum CommandTable {
    private static let byName: [Bytes: Command] = {
        var table: [Bytes: Command] = [:]
        let lists: [[Command]] = [
            StringCommands.all, NumberCommands.all, HashCommands.all, SetCommands.all, SortedSetCommands.all,
            SortedRangeCommands.all, ListCommands.all, KeyCommands.all, ExpiryCommands.all, ScanCommands.all,
            ScriptCommands.all, ConnectionCommands.all, ServerCommands.all, ClusterCommands.all,
        ]
        for list in lists { for command in list { table[Bytes(command.name)] = command } }
        return table
    }()

    static func command(_ name: Bytes) -> Command? { byName[name] ?? byName[name.lower] }

    /// Names in order.
    static var names: [String] { byName.keys.map { utf8($0) }.sorted() }
}
