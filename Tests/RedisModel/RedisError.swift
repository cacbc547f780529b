// SPDX-License-Identifier: Apache-2.0
/// An error reply: its text without the leading `-`.
struct RedisError: Error, Equatable {
    let text: String

    init(_ text: String) { self.text = text }

    static let syntax = RedisError("ERR syntax error")
    static let notInteger = RedisError("ERR value is not an integer or out of range")
    static let notFloat = RedisError("ERR value is not a valid float")
    static let notPositive = RedisError("ERR value is out of range, must be positive")
    static let outOfRange = RedisError("ERR index out of range")
    static let overflow = RedisError("ERR increment or decrement would overflow")
    static let noKey = RedisError("ERR no such key")
    static let wrongType = RedisError("WRONGTYPE Operation against a key holding the wrong kind of value")
    static let lexRange = RedisError("ERR min or max not valid string range item")
    static let scoreRange = RedisError("ERR min or max is not a float")
    static let cursor = RedisError("ERR invalid cursor")
    static let outOfMemory = RedisError("OOM command not allowed when used memory > 'maxmemory'.")
    static let readOnly = RedisError("READONLY You can't write against a read only replica.")
    static let noReplicas = RedisError("NOREPLICAS Not enough good replicas to write.")
    static let noClusterSupport = RedisError("ERR This instance has cluster support disabled")
    static let loading = RedisError("LOADING Redis is loading the dataset in memory")
    static let masterDown = RedisError(
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.")
    static let busy = RedisError(
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")
    static let noScript = RedisError("NOSCRIPT No matching script. Please use EVAL.")
    static let cannotSave = RedisError(
        "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may "
            + "modify the data set are disabled, because this instance is configured to report errors during writes if RDB "
            + "snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB "
            + "error.")

    static func argumentCount(_ command: String) -> RedisError {
        RedisError("ERR wrong number of arguments for '\(command)' command")
    }

    static func expireTime(_ command: String) -> RedisError {
        RedisError("ERR invalid expire time in '\(command)' command")
    }

    static func unknownSubcommand(_ word: Bytes, of command: String) -> RedisError {
        RedisError("ERR unknown subcommand '\(utf8(word.prefix(128)))'. Try \(command) HELP.")
    }

    /// Line ends would end the reply.
    var line: String {
        guard text.utf8.contains(where: { $0 == 13 || $0 == 10 }) else { return text }
        return String(decoding: text.utf8.map { $0 == 13 || $0 == 10 ? 32 : $0 }, as: UTF8.self)
    }
}
