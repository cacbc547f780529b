public import Redis

/// What a worker's user must be allowed to do in Redis, and no more.
public enum RedisRights {
    /// Sent by `StateStore`, or called by its scripts; the last ones tell what a server is and has.
    private static let commands = [
        "append", "del", "eval", "evalsha", "exists", "expire", "get", "hdel", "hexists", "hget", "hgetall", "hincrby",
        "hlen", "hmget", "hrandfield", "hscan", "hset", "hsetnx", "mget", "sadd", "scan", "scard", "set", "setrange",
        "smembers", "spop", "srem", "sunionstore", "zadd", "zcard", "zmscore", "zrange", "zrangebylex", "zrangebyscore",
        "zrem", "zremrangebyrank", "zremrangebyscore", "zscore", "dbsize", "info", "cluster|info",
    ]

    /// What others write is only read; what begins with `c:` is Carillon's own.
    private static let keys = ["%R~p:*", "%R~gw:*", "%R~g:*", "~c:*"]

    /// The rules of the user as ACL SETUSER takes them, but for his password.
    public static func rules(_ topology: RedisTopology) -> [String] {
        var more: [String] = []
        switch topology {
        case .cluster: more = ["asking", "cluster|slots"]
        case .single(let endpoint) where endpoint.database != 0: more = ["select"]
        case .single, .sentinel: break
        }
        return ["resetkeys"] + keys + ["resetchannels", "-@all"] + (commands + more).map { "+\($0)" }
    }

    /// As an operator gives it to each server.
    public static func line(_ topology: RedisTopology) -> String {
        let user = topology.server?.user ?? "carillon"
        return (["ACL", "SETUSER", user, "on", ">PASSWORD"] + rules(topology)).joined(separator: " ")
    }
}
