// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// One redis-server in memory, without sockets, clock and threads: bytes in, bytes out.
///
/// All that it does follows from the calls, their times and the seed. Not thread-safe.
public final class Server {
    public internal(set) var options: ServerOptions
    public var troubles = ServerTroubles()

    var databases: [Keyspace]
    private var clients: [ClientID: Client] = [:]
    private var lastClient = 0
    var users: [String: User] = [:]
    /// The connection whose command runs.
    var client = Client(id: ClientID(number: 0))
    /// The time of the command that runs. A script sees one time.
    var nowMs: Int64 = 0
    private(set) var startMs: Int64?
    private var mustLookAtTimes = false
    var random: SmallRandom
    public private(set) var runID: String
    var commandCounts: [String: Int] = [:]
    private(set) var scripts = ScriptLibrary()
    /// Made with the first script.
    private var lua: LuaRunner?
    var isInScript = false
    var scriptRun = ScriptRun()

    // Memory.
    private var exactBytes = 0
    private var bytesSince = 0
    private var writesSince = Server.recountEvery

    // Replication: see `ReplicationModel`.
    var replication: ReplicationRole
    var link = ReplicationLink()
    /// Written commands in order, where a replica wants them.
    var stream = CommandStream()
    var isApplyingStream = false
    /// What the stream gets in place of the command that runs.
    var rewrite: [[Bytes]]?
    /// Writes of the command that runs, one or those of its script.
    var effects: [[Bytes]] = []

    // See `ClusterModel`.
    var clusterNode: ClusterNode?
    // See `SentinelModel`.
    var sentinel: SentinelView?
    /// `evicted_keys`. The model itself evicts nothing: a test deletes keys and says so here.
    public var evictedKeys = 0

    public init(_ options: ServerOptions = ServerOptions()) {
        self.options = options
        var random = SmallRandom(seed: options.seed)
        runID = random.name()
        replication = ReplicationRole(id: random.name())
        self.random = random
        databases = [Keyspace](repeating: Keyspace(), count: max(1, options.databases))
        users["default"] = .open(password: options.password)
    }

    var isCluster: Bool { clusterNode != nil }

    var isReplica: Bool { replication.master != nil }

    /// A replica without its master that answers only some commands.
    var isStale: Bool { isReplica && !link.isUp && !options.servesStaleData }

    /// The database of the connection whose command runs.
    var keys: Keyspace {
        _read { yield databases[client.database] }
        _modify { yield &databases[client.database] }
    }

    // MARK: Connections

    public func connect() -> ClientID {
        lastClient += 1
        let id = ClientID(number: lastClient)
        var next = Client(id: id)
        if let open = users["default"], !open.asksForPassword { next.user = "default" }
        clients[id] = next
        return id
    }

    /// False once the server has ended the connection: the reply to QUIT or to broken bytes was its last one.
    public func isOpen(_ client: ClientID) -> Bool { clients[client] != nil }

    public func disconnect(_ client: ClientID) { clients[client] = nil }

    public var clientCount: Int { clients.count }

    /// Takes bytes of a client, in any pieces, and returns the bytes of all replies that they complete.
    public func receive(_ bytes: Bytes, from id: ClientID, nowMs: Int64) -> Bytes {
        guard let current = clients.removeValue(forKey: id) else { return [] }
        client = current
        advance(to: nowMs)
        client.reader.feed(bytes)
        var out = Bytes()
        reading: while !client.isClosing {
            switch client.reader.next() {
            case .needsBytes: break reading
            case .broken(let error):
                Reply.error(error).write(form, to: &out)
                client.isClosing = true
            case .command(let words):
                let reply = serve(words)
                reply.write(form, to: &out)
            }
        }
        if !client.isClosing { clients[id] = client }
        client = Client(id: ClientID(number: 0))
        return out
    }

    private var form: Reply.Form { Reply.Form(version: client.version, isShortest: options.hasShortestDigits) }

    /// Moves the time forward, which ends keys. `receive` does it too.
    public func advance(to nowMs: Int64) {
        if startMs != nil, nowMs <= self.nowMs, !mustLookAtTimes { return }
        self.nowMs = max(nowMs, self.nowMs)
        if startMs == nil { startMs = self.nowMs }
        mustLookAtTimes = false
        for index in databases.indices {
            databases[index].set(nowMs: self.nowMs)
            guard !isReplica else { continue }
            for key in databases[index].removeExpired() { stream.append([Bytes("DEL"), key], database: index) }
        }
    }

    /// Ends keys of data that came from elsewhere, or of a server that has become a master.
    func lookAtTimes() {
        mustLookAtTimes = true
        advance(to: nowMs)
    }

    // MARK: Memory

    private static let recountEvery = 32

    /// Approximate: exact at times, and the bytes of the writes since.
    var usedBytes: Int {
        if writesSince >= Self.recountEvery {
            exactBytes = (1 << 20) + databases.reduce(0) { $0 + $1.byteCount }
            bytesSince = 0
            writesSince = 0
        }
        return exactBytes + bytesSince
    }

    var isFull: Bool { options.maxMemory > 0 && usedBytes > options.maxMemory }

    func noteWrite(_ words: [Bytes]) {
        guard options.maxMemory > 0 else { return }
        bytesSince += words.reduce(0) { $0 + $1.count }
        writesSince += 1
    }

    /// The next look at the memory counts anew.
    func recountMemory() { writesSince = Self.recountEvery }

    public func setMaxMemory(_ bytes: Int) {
        options.maxMemory = bytes
        recountMemory()
    }

    public func setMinReplicas(_ count: Int) { options.minReplicas = count }

    // MARK: Scripts

    func withScripts<Result>(_ body: (inout ScriptLibrary) -> Result) -> Result { body(&scripts) }

    func runner() throws(RedisError) -> LuaRunner {
        if let lua { return lua }
        guard let made = LuaRunner(self) else { throw RedisError("ERR no memory for Lua") }
        lua = made
        return made
    }

    func dropLua() {
        lua = nil
        scripts = ScriptLibrary()
    }

    // MARK: Life

    /// The process ends and starts again with these data, or with none: no connection, script or login outlives it.
    public func restart(with snapshot: Snapshot? = nil) {
        clients = [:]
        dropLua()
        runID = random.name()
        startMs = nil
        client = Client(id: ClientID(number: 0))
        load(snapshot ?? Snapshot())
        if replication.master == nil { replication = ReplicationRole(id: random.name()) }
    }

    /// Ends all connections, as a server does that becomes a replica or a master.
    public func disconnectAll() { clients = [:] }

    /// The data as a value.
    public var snapshot: Snapshot { Snapshot(databases: databases) }

    /// Replaces the data.
    public func load(_ snapshot: Snapshot) {
        databases = snapshot.databases
        while databases.count < max(1, options.databases) { databases.append(Keyspace()) }
        stream.reset()
        recountMemory()
        lookAtTimes()
    }
}

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

extension Server {
    /// Refuses a command whose keys belong to another node, in the order of Redis' checks.
    func checkPlace(_ command: Command, _ words: [Bytes], writes: Bool) throws(RedisError) {
        guard let node = clusterNode else { return }
        let keys = command.keys(in: words)
        guard let first = keys.first else { return }
        let slot = Slot.of(first)
        guard let owner = node.map.owners[slot] else { throw RedisError("CLUSTERDOWN Hash slot not served") }
        guard keys.allSatisfy({ Slot.of($0) == slot }) else {
            throw RedisError("CROSSSLOT Keys in request don't hash to the same slot")
        }
        if node.map.isDown { throw RedisError("CLUSTERDOWN The cluster is down") }
        let missing = keys.count { !databases[0].contains($0) }
        if owner == node.index, let target = node.leaving[slot], missing > 0 {
            if missing < keys.count { throw Self.tryAgain }
            throw RedisError("ASK \(slot) \(node.peers[target].address)")
        }
        if owner != node.index, node.arriving[slot] != nil, client.isAsking {
            if keys.contains(where: { $0 != first }), missing > 0 { throw Self.tryAgain }
            return
        }
        if client.readsReplica, !writes, node.map.masters[node.index] == owner { return }
        if owner != node.index { throw RedisError("MOVED \(slot) \(node.peers[owner].address)") }
    }

    private static let tryAgain = RedisError("TRYAGAIN Multiple keys request during rehashing of slot")

    /// The same rules for a command of a script, which are no redirects there.
    func checkScriptPlace(_ command: Command, _ words: [Bytes]) throws(RedisError) {
        guard isCluster else { return }
        let isWrite = command.flags.contains(.write)
        do throws(RedisError) {
            try checkPlace(command, words, writes: isWrite)
        } catch {
            throw RedisError(
                error.text.hasPrefix("CLUSTERDOWN The")
                    ? "ERR Script attempted to execute a command while the cluster is down"
                    : "ERR Script attempted to access a non local key in a cluster node")
        }
        guard let slot = command.keys(in: words).first.map({ Slot.of($0) }),
            scriptRun.flags.isDisjoint(with: [.allowCrossSlot, .isOld])
        else { return }
        if let own = scriptRun.slot, own != slot { throw Self.scriptCrossesSlots }
        scriptRun.slot = slot
    }

    private static let scriptCrossesSlots = RedisError(
        "ERR Script attempted to access keys that do not hash to the same slot")
}
