// SPDX-License-Identifier: Apache-2.0
/// The way of a command through the server's rules, in the order of Redis.
extension Server {
    /// A command of a connection.
    func serve(_ words: [Bytes]) -> Reply {
        let reply: Reply
        let wasAsking = client.isAsking
        do throws(RedisError) {
            reply = try admitted(words)
        } catch {
            if client.queue != nil { client.isQueueBroken = true }
            reply = .error(error)
        }
        if wasAsking { client.isAsking = false }
        return reply
    }

    private func admitted(_ words: [Bytes]) throws(RedisError) -> Reply {
        let command = try find(words)
        if client.user == nil, !command.flags.contains(.beforeLogin) {
            throw RedisError("NOAUTH Authentication required.")
        }
        let flags = flags(of: command, words)
        try checkRights(command, words)
        try checkPlace(command, words, writes: flags.contains(.write))
        if flags.contains(.deniesOOM), isFull { throw .outOfMemory }
        if flags.contains(.write), !isReplica {
            if troubles.cannotSave { throw .cannotSave }
            if replication.liveReplicas < options.minReplicas { throw .noReplicas }
        }
        if flags.contains(.write), isReplica { throw .readOnly }
        if isStale, !flags.contains(.whileStale) { throw .masterDown }
        if troubles.isLoading, !flags.contains(.whileLoading) { throw .loading }
        if troubles.isBusy, !flags.contains(.whileBusy) { throw .busy }
        let isControl = ["exec", "discard", "multi", "quit", "reset", "watch"].contains(command.name)
        if client.queue != nil, !isControl {
            client.queue?.append(words)
            return .status("QUEUED")
        }
        return perform(command, words)
    }

    /// The command by its name, with enough words.
    func find(_ words: [Bytes]) throws(RedisError) -> Command {
        let name = words.first ?? []
        guard let command = CommandTable.command(name), sentinel == nil || SentinelView.knows(command.name) else {
            var rest = ""
            for word in words.dropFirst() where rest.utf8.count < 128 {
                rest += "'\(utf8(word.prefix(128 - rest.utf8.count).prefix { $0 != 0 }))' "
            }
            throw RedisError("ERR unknown command '\(utf8(name.prefix(128)))', with args beginning with: \(rest)")
        }
        if let word = command.subcommand(words), command.subcommands[word] == nil {
            throw .unknownSubcommand(words[1], of: command.name.uppercased())
        }
        guard command.takes(words) else { throw .argumentCount(command.fullName(words)) }
        return command
    }

    /// A script's own flags replace those of EVAL.
    private func flags(of command: Command, _ words: [Bytes]) -> Command.Flags {
        guard command.flags.contains(.script), let script = ScriptHead.of(command, words, scripts) else {
            return command.flags
        }
        return script.commandFlags(command.flags)
    }

    private func checkRights(_ command: Command, _ words: [Bytes]) throws(RedisError) {
        guard !command.flags.contains(.beforeLogin), let user = client.user.flatMap({ users[$0] }) else { return }
        if !user.mayRun(command, words) {
            let subject = options.hasShortestDigits ? "User \(user.name)" : "this user"
            throw RedisError("NOPERM \(subject) has no permissions to run the '\(command.fullName(words))' command")
        }
        // A script needs both rights of its keys.
        let keys = command.keys(in: words)
        let isScript = command.flags.contains(.script) && !command.name.hasSuffix("_ro")
        let isWrite = isScript || command.flags.contains(.write)
        if (isScript && !user.mayUse(keys, writes: false)) || !user.mayUse(keys, writes: isWrite) {
            throw RedisError(
                options.hasShortestDigits
                    ? "NOPERM No permissions to access a key"
                    : "NOPERM this user has no permissions to access one of the keys used as arguments")
        }
    }

    /// Runs a command that may run. Its effects go to the replicas, also those of a script that then failed.
    func perform(_ command: Command, _ words: [Bytes]) -> Reply {
        commandCounts[command.fullName(words), default: 0] += 1
        rewrite = nil
        let reply: Reply
        do throws(RedisError) {
            reply = try command.run(self, Arguments(words: words))
        } catch {
            reply = .error(error)
        }
        if command.flags.contains(.write), !reply.isError {
            noteWrite(words)
            if stream.isWanted { effects += rewrite ?? [words] }
        }
        rewrite = nil
        if !isInScript, !effects.isEmpty {
            for effect in effects { stream.append(effect, database: client.database) }
            effects = []
        }
        return reply
    }
}
