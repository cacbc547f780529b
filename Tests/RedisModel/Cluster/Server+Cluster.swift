// SPDX-License-Identifier: Apache-2.0
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
