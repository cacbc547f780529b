// SPDX-License-Identifier: Apache-2.0
public import Redis

/// The minimum Redis rights of a worker's user.
public enum RedisRights {
    /// Sent by `StateStore`, or called by its scripts. The last ones report a server's properties.
    private static let commands = [
        "append", "del", "eval", "evalsha", "exists", "expire", "get", "hdel", "hexists", "hget", "hgetall", "hincrby",
        "hlen", "hmget", "hrandfield", "hscan", "hset", "hsetnx", "mget", "persist", "sadd", "scan", "scard", "set",
        "setrange",
        "smembers", "spop", "srem", "sunionstore", "zadd", "zcard", "zmscore", "zrange", "zrangebylex", "zrangebyscore",
        "zrem", "zremrangebyrank", "zremrangebyscore", "zscore", "dbsize", "info", "time", "cluster|info",
    ]

    /// A word and arguments that `redis.acl_check_cmd` can check, with a key for commands that take one.
    private static func sample(_ command: String) -> String {
        switch command {
        case "eval", "evalsha": "\(command) return 0"
        case "scan", "select": "\(command) 0"
        case "dbsize", "info", "time", "asking": command
        case "cluster|info": "cluster info"
        case "cluster|slots": "cluster slots"
        // All their arguments are keys.
        case "del", "exists", "mget": "\(command) \(ownKey)"
        case "sunionstore": "\(command) \(ownKey) \(ownKey)"
        default: "\(command) \(ownKey) 0 0"
        }
    }

    private static let ownKey = "c:{check}"

    /// Keys of others are only read. Keys with the prefix `c:` are Carillon's own.
    private static let keys = ["%R~p:*", "%R~gw:*", "%R~g:*", "~c:*"]

    /// Each rule with a command that it allows.
    private static let samplesOfKeys = [
        "%R~p:* hrandfield p:{check}", "%R~gw:* get gw:check", "%R~g:* hmget g:{check} x",
    ]

    /// Needs only the right to run scripts, and neither reads nor writes a key.
    private static let script = """
        #!lua flags=no-writes
        local missing = {}
        for i = 1, #ARGV do
            local words = {}
            for word in string.gmatch(ARGV[i], '%S+') do words[#words + 1] = word end
            local rule = table.remove(words, 1)
            local known, allowed = pcall(redis.acl_check_cmd, unpack(words))
            if known and not allowed then missing[#missing + 1] = rule end
        end
        return missing
        """

    /// A command with an answer for `missing`. It uses no keys and needs no additional right.
    public static func question(_ topology: RedisTopology) -> [String] {
        ["EVAL", script, "0"] + words(topology).map { "+\($0) \(sample($0))" } + samplesOfKeys
    }

    /// The rules that the user lacks. If no command may use Carillon's own keys, that rule is the missing one.
    public static func missing(_ answer: RedisAnswer) -> [String] {
        let rules = (answer.list ?? []).compactMap(\.text)
        let keyed = commands.filter { sample($0).contains(ownKey) }.map { "+\($0)" }
        guard Set(keyed).isSubset(of: rules) else { return rules }
        return ["~c:*"] + rules.filter { !keyed.contains($0) }
    }

    private static func words(_ topology: RedisTopology) -> [String] {
        switch topology {
        case .cluster: commands + ["asking", "cluster|slots"]
        case .single(let endpoint) where endpoint.database != 0: commands + ["select"]
        case .single, .sentinel: commands
        }
    }

    /// The rules of the user for ACL SETUSER, without the password.
    public static func rules(_ topology: RedisTopology) -> [String] {
        return ["resetkeys"] + keys + ["resetchannels", "-@all"] + words(topology).map { "+\($0)" }
    }

    /// The command for each server.
    public static func line(_ topology: RedisTopology) -> String {
        let user = topology.server?.user ?? "carillon"
        return (["ACL", "SETUSER", user, "on", ">PASSWORD"] + rules(topology)).joined(separator: " ")
    }

    /// The same for each Sentinel; nil without Sentinels.
    public static func sentinelLine(_ topology: RedisTopology) -> String? {
        guard case .sentinel(let sentinels) = topology else { return nil }
        let user = sentinels.nodes.first?.user ?? "carillon"
        return
            "ACL SETUSER \(user) on >PASSWORD resetkeys resetchannels -@all +info +sentinel|get-master-addr-by-name +sentinel|master"
    }
}
