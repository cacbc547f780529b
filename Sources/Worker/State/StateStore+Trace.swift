import Redis

/// The trace: what happened to a user's events, newest first, one list per day.
extension StateStore {
    /// Puts a record before the others; the reply is how many there are, so that the caller knows a new or a long list.
    func trace(app: String, uid: String, day: Int64, record: [UInt8], tag: UInt64) throws(RedisFault) {
        try client.command(tag, traces) { command in
            command.arg("LPUSH")
            command.traceKey(app, uid, day)
            command.arg(record)
        }
    }

    /// Gives a list its life.
    func expireTrace(app: String, uid: String, day: Int64, seconds: Int64, tag: UInt64) throws(RedisFault) {
        try client.command(tag, traces) { command in
            command.arg("EXPIRE")
            command.traceKey(app, uid, day)
            command.arg(seconds)
        }
    }

    /// Leaves the newest `cap` records.
    func trimTrace(app: String, uid: String, day: Int64, cap: Int, tag: UInt64) throws(RedisFault) {
        try client.command(tag, traces) { command in
            command.arg("LTRIM")
            command.traceKey(app, uid, day)
            command.arg(0)
            command.arg(cap - 1)
        }
    }

    /// All records of a day: an array, each for `TraceRecord`.
    func readTrace(app: String, uid: String, day: Int64, tag: UInt64) throws(RedisFault) {
        try client.command(tag, traces) { command in
            command.arg("LRANGE")
            command.traceKey(app, uid, day)
            command.arg(0)
            command.arg(-1)
        }
    }
}

extension RedisCommand {
    /// `c:t<length of uid>:{app:uid}<day>` as one argument.
    fileprivate mutating func traceKey(_ app: String, _ uid: String, _ day: Int64) {
        part("c:t")
        part(Int64(uid.utf8.count))
        part(":{")
        part(app)
        part(":")
        part(uid)
        part("}")
        part(day)
        end()
    }
}
