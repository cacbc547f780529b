// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// A master and its replicas. Each replica has a tail of commands that it did not receive yet, and a failover loses it.
public final class ReplicationModel {
    private struct Follower {
        let server: Server
        /// Of the next command in the master's stream.
        var next: Int
        var isLinked = true
    }

    public private(set) var master: Server
    private var followers: [Follower] = []
    private var random: SmallRandom

    /// - Parameter seed: decides the names of the reigns (`master_replid`).
    public init(master: Server, replicas: [Server], seed: UInt64 = 1) {
        self.master = master
        random = SmallRandom(seed: seed)
        for replica in replicas { follow(replica) }
    }

    public var replicas: [Server] { followers.map(\.server) }

    private func place(of replica: Server) -> Int? { followers.firstIndex { $0.server === replica } }

    /// Copies all of the master's data to a server, which becomes its replica.
    private func follow(_ server: Server) {
        followers.removeAll { $0.server === server }
        master.stream.isWanted = true
        server.replication.master = (master.options.host, master.options.port)
        server.replication.id = master.replication.id
        server.replication.liveReplicas = 0
        server.replication.replicas = []
        server.stream.isWanted = false
        server.link.isUp = true
        server.advance(to: master.nowMs)
        server.load(master.snapshot)
        followers.append(Follower(server: server, next: master.stream.endIndex))
        noteReplicas()
    }

    private func noteReplicas() {
        let linked = followers.filter(\.isLinked)
        master.replication.liveReplicas = linked.count
        master.replication.replicas = linked.map { ($0.server.options.host, $0.server.options.port) }
        master.stream.drop(before: followers.map(\.next).min() ?? master.stream.endIndex)
    }

    // MARK: The tail

    /// Commands that the replica has not received.
    public func lag(of replica: Server) -> Int {
        place(of: replica).map { master.stream.endIndex - followers[$0].next } ?? 0
    }

    /// The replica receives up to `count` more commands.
    public func pass(_ count: Int, to replica: Server) {
        guard let place = place(of: replica), followers[place].isLinked else { return }
        replica.advance(to: master.nowMs)
        for _ in 0..<count {
            guard let entry = master.stream.entry(at: followers[place].next) else { break }
            replica.apply(entry)
            followers[place].next += 1
        }
        noteReplicas()
    }

    /// Every linked replica receives all.
    public func catchUp() {
        for follower in followers where follower.isLinked { pass(.max, to: follower.server) }
    }

    /// The link of a replica to its master breaks, or works again.
    public func setLink(of replica: Server, isUp: Bool) {
        guard let place = place(of: replica) else { return }
        followers[place].isLinked = isUp
        replica.link.isUp = isUp
        noteReplicas()
    }

    // MARK: Failing over

    /// A replica becomes the master with what it has. Its tail is lost, and with it whatever clients were told of it.
    ///
    /// - Parameter oldMasterFollows: the old master copies the new one at once. Otherwise it goes on as a master of
    ///   its own, as behind a broken network, until `rejoin`.
    /// - Returns: the number of lost commands.
    @discardableResult
    public func failOver(to replica: Server, oldMasterFollows: Bool = true) -> Int {
        guard let place = place(of: replica) else { return 0 }
        let lost = lag(of: replica)
        let old = master
        let others = followers.map(\.server).filter { $0 !== replica }
        followers.remove(at: place)
        followers = []
        replica.replication = ReplicationRole(id: random.name())
        replica.link.isUp = true
        replica.stream.reset()
        replica.advance(to: old.nowMs)
        replica.lookAtTimes()
        master = replica
        for other in others { follow(other) }
        old.stream.isWanted = false
        old.stream.reset()
        old.replication.liveReplicas = 0
        old.replication.replicas = []
        if oldMasterFollows { follow(old) }
        noteReplicas()
        return lost
    }

    /// An old master, or a server that was away, copies the master from now on.
    public func rejoin(_ server: Server) {
        guard server !== master else { return }
        follow(server)
    }

    /// The master's process ends and starts again with these data, and its replicas copy them.
    public func restartMaster(with snapshot: Snapshot?) {
        let servers = replicas
        master.restart(with: snapshot)
        for server in servers { follow(server) }
    }
}

extension Server {
    /// A command of the master's stream.
    func apply(_ entry: CommandStream.Entry) {
        guard let command = CommandTable.command(entry.words.first ?? []) else { return }
        let current = client
        client = Client(id: ClientID(number: 0))
        client.database = entry.database
        isApplyingStream = true
        _ = perform(command, entry.words)
        isApplyingStream = false
        client = current
    }
}
