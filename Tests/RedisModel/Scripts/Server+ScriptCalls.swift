// SPDX-License-Identifier: Apache-2.0
/// The rules for a command that a script calls, in the order of Redis.
extension Server {
    func call(_ words: [Bytes]) -> Reply {
        do throws(RedisError) {
            let command = try callable(words)
            return perform(command, words)
        } catch {
            return .error(error)
        }
    }

    private func callable(_ words: [Bytes]) throws(RedisError) -> Command {
        guard let command = CommandTable.command(words.first ?? []) else {
            throw RedisError("ERR Unknown Redis command called from script")
        }
        guard command.takes(words) else {
            throw RedisError("ERR Wrong number of args calling Redis command from script")
        }
        if command.flags.contains(.notInScripts) {
            throw RedisError("ERR This Redis command is not allowed from script")
        }
        if isStale, !command.flags.contains(.whileStale) {
            throw RedisError("ERR Can not execute the command on a stale replica")
        }
        try checkScriptRights(command, words)
        if command.flags.contains(.write) {
            try checkScriptWrite()
        }
        if command.flags.contains(.deniesOOM), scriptRun.beganFull, !scriptRun.hasWritten,
            !scriptRun.flags.contains(.allowOOM)
        {
            throw .outOfMemory
        }
        if command.flags.contains(.write) { scriptRun.hasWritten = true }
        try checkScriptPlace(command, words)
        return command
    }

    private func checkScriptRights(_ command: Command, _ words: [Bytes]) throws(RedisError) {
        guard let user = client.user.flatMap({ users[$0] }) else { return }
        let isNew = options.hasShortestDigits
        if !user.mayRun(command, words) {
            throw RedisError(
                isNew
                    ? "ERR ACL failure in script: User \(user.name) has no permissions to run the "
                        + "'\(command.fullName(words))' command"
                    : "ERR The user executing the script can't run this command or subcommand")
        }
        if !user.mayUse(command.keys(in: words), writes: command.flags.contains(.write)) {
            throw RedisError(
                isNew
                    ? "ERR ACL failure in script: No permissions to access a key"
                    : "ERR The user executing the script can't access at least one of the keys mentioned in the command "
                        + "arguments")
        }
    }

    private func checkScriptWrite() throws(RedisError) {
        if scriptRun.isReadOnly { throw RedisError("ERR Write commands are not allowed from read-only scripts.") }
        if scriptRun.hasWritten { return }
        if isReplica { throw .readOnly }
        if troubles.cannotSave { throw .cannotSave }
        if replication.liveReplicas < options.minReplicas { throw .noReplicas }
    }
}
