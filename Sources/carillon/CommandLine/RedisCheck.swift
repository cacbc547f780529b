// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import Redis
import Worker

/// The questions of `check` to Redis: the server, every node of a cluster, or every Sentinel and the master that they
/// name. For each: can it be reached and used, the user's rights, persistence, and its clock.
///
/// A replica gets the same checks as a master, because it can become one.
struct RedisCheck {
    let section: Configuration.RedisSection

    func findings() async -> [Finding] {
        let inspector: RedisInspector
        do throws(LoopFault) {
            inspector = try RedisInspector(limits: section.limits)
        } catch {
            return [Finding(.fail, "redis", section.place, error.description)]
        }
        var findings: [Finding]
        switch section.topology {
        case .single(let endpoint): findings = await server(endpoint, inspector)
        case .cluster(let seeds): findings = await cluster(seeds, inspector)
        case .sentinel(let sentinels): findings = await master(of: sentinels, inspector)
        }
        inspector.close()
        findings.append(Finding(.ok, "redis", "rights", RedisRights.line(section.topology)))
        if let line = RedisRights.sentinelLine(section.topology) {
            findings.append(Finding(.ok, "redis", "rights", "at each Sentinel: \(line)"))
        }
        return findings
    }

    // MARK: - One server

    /// - Parameter isWatched: Sentinels watch it, so it needs a replica.
    private func server(
        _ endpoint: RedisEndpoint, _ inspector: RedisInspector, isWatched: Bool = false
    ) async -> [Finding] {
        let look = await inspector.inspect(at: endpoint, as: .single, asking: [RedisRights.question(section.topology)])
        guard let facts = look.facts else { return [away(look)] }
        var findings = [reached(look, facts), masterRole(facts, look.place)]
        if isWatched, facts.replicaCount == 0 {
            findings.append(
                Finding(.warn, "redis", look.place, "has no replica: the Sentinels cannot fail over"))
        }
        return findings + state(look, facts, rights: look.answers.first)
    }

    private func away(
        _ look: RedisLook, _ grade: Finding.Grade = .fail, _ part: String = "redis", cure: String? = nil
    ) -> Finding {
        let fault = look.fault ?? RedisFault(.notConnected)
        return Finding(grade, part, look.place, "\(fault)\(cure ?? RedisOpening.cure(fault))")
    }

    private func reached(_ look: RedisLook, _ facts: RedisServerFacts, _ what: String = "") -> Finding {
        let mode = facts.mode.map { ", \($0.rawValue)" } ?? ""
        return Finding(
            .ok, "redis", look.place,
            "\(facts.version ?? "unknown version")\(mode)\(what), a script ran in \(look.micros) µs")
    }

    /// Checks for masters and replicas.
    private func state(_ look: RedisLook, _ facts: RedisServerFacts, rights: RedisAnswer?) -> [Finding] {
        memory(facts, look.place) + [eviction(facts, look.place), persistence(facts, look.place)]
            + missing(rights, look) + clock(facts, look.place)
    }

    private func missing(_ answer: RedisAnswer?, _ look: RedisLook) -> [Finding] {
        guard let answer else {
            let why = look.fault.map { ": \($0)" } ?? ""
            return [Finding(.warn, "redis", look.place, "does not show the rights of this user\(why)")]
        }
        let missing = RedisRights.missing(answer)
        if missing.isEmpty { return [] }
        let user = section.topology.server?.user ?? "default"
        return [
            Finding(
                .fail, "redis", look.place,
                "the user \(user) lacks \(missing.joined(separator: " ")): grant it as `carillon check --acl` prints it"
            )
        ]
    }

    private func clock(_ facts: RedisServerFacts, _ place: String) -> [Finding] {
        facts.clockAheadMs.map { Checks.clock(aheadSeconds: $0 / 1000, of: "Redis", place) } ?? []
    }

    private func masterRole(_ facts: RedisServerFacts, _ place: String) -> Finding {
        switch facts.isReplica {
        case true?:
            Finding(
                .fail, "redis", place,
                "is a replica and refuses writes: pushes would go without a badge; give its master as redis.url")
        case false?: Finding(.ok, "redis", place, "is a master")
        case nil:
            Finding(
                .warn, "redis", place,
                "does not show its version and role: grant INFO, or make sure that it is a master of 7.0 or newer")
        }
    }

    /// See docs/operations.md, Redis, for the effect of lost data on users.
    private func persistence(_ facts: RedisServerFacts, _ place: String) -> Finding {
        switch facts.keepsLog {
        case true?: Finding(.ok, "redis", place, "appendonly yes")
        case false?:
            Finding(
                .warn, "redis", place,
                "appendonly no: a crash loses the writes since the last snapshot: marks (users are pushed twice) and tokens "
                    + "(devices get no push); set appendonly yes")
        case nil: Finding(.warn, "redis", place, "does not show whether it persists: make sure that appendonly is yes")
        }
    }

    /// Above its limit Redis refuses every write, or deletes state.
    private func memory(_ facts: RedisServerFacts, _ place: String) -> [Finding] {
        guard let used = facts.memory, let most = facts.memoryMax, most > 0 else { return [] }
        let (unit, name): (Int64, String) = most < 100 << 20 ? (1 << 10, "KiB") : (1 << 20, "MiB")
        let words = "\(used / unit) of \(most / unit) \(name) (maxmemory) are in use"
        if used >= most {
            return [
                Finding(.fail, "redis", place, "\(words): it refuses writes or deletes state; give it more memory")
            ]
        }
        return Double(used) > 0.9 * Double(most)
            ? [Finding(.warn, "redis", place, "\(words): give it more memory")]
            : [Finding(.ok, "redis", place, words)]
    }

    /// An evicted mark causes a second push; an evicted token loses all pushes.
    private func eviction(_ facts: RedisServerFacts, _ place: String) -> Finding {
        switch facts.evictionPolicy {
        case RedisServerFacts.safePolicy: Finding(.ok, "redis", place, "maxmemory-policy noeviction")
        case let policy?:
            Finding(
                .warn, "redis", place,
                "maxmemory-policy \(policy): state may vanish; set maxmemory-policy noeviction")
        case nil:
            Finding(.warn, "redis", place, "does not show maxmemory-policy: make sure that it is noeviction")
        }
    }

    // MARK: - A cluster

    /// The configured nodes, and then the nodes in the map of the first node that answers.
    private func cluster(_ seeds: [RedisEndpoint], _ inspector: RedisInspector) async -> [Finding] {
        let questions = [RedisClusterMember.question, RedisRights.question(section.topology)]
        var looks: [String: RedisLook] = [:]
        var findings: [Finding] = []
        var members: [RedisClusterMember] = []
        for seed in seeds {
            let look = await inspector.inspect(at: seed, as: .node, asking: questions)
            looks[look.place] = look
            guard members.isEmpty, look.facts != nil else { continue }
            do throws(RedisFault) {
                guard let answer = look.answers.first else { throw look.fault ?? RedisFault(.notConnected) }
                members = try RedisClusterMember.all(in: answer, asked: seed, seeds: seeds)
            } catch {
                let cure = error.code == .noPermission ? "; grant +cluster|slots" : ""
                findings.append(Finding(.fail, "redis", look.place, "\(error)\(cure)"))
            }
        }
        for member in members where looks[member.endpoint.description] == nil {
            let look = await inspector.inspect(at: member.endpoint, as: .node, asking: questions)
            looks[look.place] = look
        }
        return findings + strangers(seeds, members, looks) + nodes(members, looks)
    }

    /// Configured nodes that neither own a slot nor replicate one: they are down, have not joined, or have another name
    /// in the cluster.
    private func strangers(
        _ seeds: [RedisEndpoint], _ members: [RedisClusterMember], _ looks: [String: RedisLook]
    ) -> [Finding] {
        var findings: [Finding] = []
        for seed in seeds where !members.contains(where: { $0.endpoint == seed }) {
            guard let look = looks[seed.description] else { continue }
            let isKnown = look.facts != nil
            if isKnown, members.isEmpty { continue }
            findings.append(
                isKnown
                    ? Finding(
                        .ok, "redis", look.place, "answers; the cluster knows it by another name, or not at all")
                    : away(look, members.isEmpty ? .fail : .warn))
        }
        return findings
    }

    private func nodes(_ members: [RedisClusterMember], _ looks: [String: RedisLook]) -> [Finding] {
        var findings = members.flatMap { member in
            looks[member.endpoint.description].map { node(member, $0) } ?? []
        }
        let served = members.reduce(0) { $0 + ($1.slots ?? 0) }
        if !members.isEmpty, served < RedisClusterMember.slotCount {
            findings.append(
                Finding(
                    .fail, "redis", "cluster",
                    "\(served) of \(RedisClusterMember.slotCount) slots are served: users of the others are not pushed")
            )
        }
        return findings
    }

    private func node(_ member: RedisClusterMember, _ look: RedisLook) -> [Finding] {
        guard let facts = look.facts else {
            return [
                member.slots == nil
                    ? away(look, .warn, cure: "; a replica that is down cannot take over")
                    : away(look)
            ]
        }
        var findings: [Finding] = []
        if let slots = member.slots {
            // The map omits replicas that have copied nothing yet.
            let replicas = max(member.replicas, facts.replicaCount ?? 0)
            findings.append(reached(look, facts, ", master of \(slots) slots"))
            findings.append(
                replicas == 0
                    ? Finding(.warn, "redis", look.place, "has no replica: when it dies, its users go with it")
                    : Finding(
                        .ok, "redis", look.place, "\(counted(replicas, "replica"))"))
        } else {
            findings.append(reached(look, facts, ", a replica"))
            if facts.isLinkedToMaster == false {
                findings.append(
                    Finding(.warn, "redis", look.place, "has no link to its master, and is behind it: see its log"))
            }
        }
        return findings + state(look, facts, rights: look.answers.count > 1 ? look.answers[1] : nil)
    }

    // MARK: - Sentinels

    private func master(of sentinels: RedisSentinels, _ inspector: RedisInspector) async -> [Finding] {
        var findings: [Finding] = []
        var masters: [RedisEndpoint] = []
        var named = 0
        for sentinel in sentinels.nodes {
            let question = RedisSentinelMaster.question(sentinels)
            let look = await inspector.inspect(at: sentinel, as: .sentinel, asking: [question])
            guard let answer = look.answers.first else {
                let isDenied = look.fault?.code == .noPermission
                let cure = isDenied ? "; grant +sentinel|get-master-addr-by-name" : nil
                findings.append(away(look, .warn, "sentinel", cure: cure))
                continue
            }
            do throws(RedisFault) {
                let master = try RedisSentinelMaster.endpoint(in: answer, of: sentinels, asked: sentinel)
                named += 1
                if !masters.contains(master) { masters.append(master) }
                let version = look.facts?.version.map { " \($0)" } ?? ""
                findings.append(
                    Finding(.ok, "sentinel", look.place, "Sentinel\(version): \(sentinels.masterName) is \(master)"))
            } catch {
                findings.append(Finding(.fail, "sentinel", look.place, "\(error.text); see redis.sentinel.master"))
            }
            if let facts = look.facts { findings += clock(facts, look.place) }
        }
        if masters.count > 1 {
            let list = masters.map(\.description).joined(separator: ", ")
            findings.append(
                Finding(
                    .fail, "sentinel", sentinels.masterName,
                    "the Sentinels name several masters: \(list); where no failover is under way, see their networks"))
        }
        let majority = sentinels.nodes.count / 2 + 1
        if named < majority {
            findings.append(
                Finding(
                    .fail, "sentinel", sentinels.masterName,
                    "\(named) of \(sentinels.nodes.count) Sentinels name a master: a worker uses the one that \(majority) name"
                ))
        }
        for master in masters {
            findings += await server(master, inspector, isWatched: true)
        }
        return findings
    }
}
