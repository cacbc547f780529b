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
