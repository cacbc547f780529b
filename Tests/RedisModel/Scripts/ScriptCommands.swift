// SPDX-License-Identifier: Apache-2.0
/// EVAL and its kin.
enum ScriptCommands {
    static let all: [Command] = [
        Command("eval", -3, .counted(at: 2), [.script, .notInScripts, .whileStale]) {
            server, words throws(RedisError) in
            try evaluate(server, words, isReadOnly: false)
        },
        Command("eval_ro", -3, .counted(at: 2), [.script, .notInScripts, .whileStale]) {
            server, words throws(RedisError) in
            try evaluate(server, words, isReadOnly: true)
        },
        Command("evalsha", -3, .counted(at: 2), [.script, .notInScripts, .whileStale]) {
            server, words throws(RedisError) in
            try evaluateSum(server, words, isReadOnly: false)
        },
        Command("evalsha_ro", -3, .counted(at: 2), [.script, .notInScripts, .whileStale]) {
            server, words throws(RedisError) in
            try evaluateSum(server, words, isReadOnly: true)
        },
        Command(
            "script", -2, .none, [.notInScripts], subcommands: ["load": 3, "exists": -3, "flush": -2, "kill": 2], manage
        ),
    ]

    private static func keyCount(_ words: Arguments) throws(RedisError) -> Int {
        let count = try words.integer(2)
        if count > Int64(words.count - 3) {
            throw RedisError("ERR Number of keys can't be greater than number of args")
        }
        if count < 0 { throw RedisError("ERR Number of keys can't be negative") }
        return Int(count)
    }

    private static func evaluate(_ server: Server, _ words: Arguments, isReadOnly: Bool) throws(RedisError) -> Reply {
        let keys = try keyCount(words)
        let sum = ScriptLibrary.sum(words[1])
        let script = try load(server, words[1], sum)
        return try run(server, words, keys, script, sum, isReadOnly: isReadOnly)
    }

    private static func evaluateSum(
        _ server: Server, _ words: Arguments, isReadOnly: Bool
    ) throws(RedisError) -> Reply {
        let sum = words[1].lower
        guard sum.count == 40 else { throw .noScript }
        let keys = try keyCount(words)
        guard let script = server.withScripts({ $0.script(sum) }) else { throw .noScript }
        return try run(server, words, keys, script, sum, isReadOnly: isReadOnly)
    }

    private static func load(_ server: Server, _ body: Bytes, _ sum: Bytes) throws(RedisError) -> ScriptLibrary.Script {
        if let known = server.withScripts({ $0.script(sum) }) { return known }
        let head = try ScriptHead(body)
        let reference = try server.runner().compile(Array(body.dropFirst(head.byteCount)))
        let script = ScriptLibrary.Script(head: head, reference: reference)
        server.withScripts { $0.add(sum, script) }
        return script
    }

    private static func run(
        _ server: Server, _ words: Arguments, _ keyCount: Int, _ script: ScriptLibrary.Script, _ sum: Bytes,
        isReadOnly: Bool
    ) throws(RedisError) -> Reply {
        let flags = script.head.flags
        if flags.contains(.noCluster), server.isCluster {
            throw RedisError("ERR Can not run script on cluster, 'no-cluster' flag is set.")
        }
        if flags.contains(.isOld), server.isStale { throw .masterDown }
        if isReadOnly, flags.isDisjoint(with: [.noWrites, .isOld]) {
            throw RedisError("ERR Can not execute a script with write flag using *_ro command.")
        }
        let keys = Array(words.from(3).prefix(keyCount))
        server.scriptRun = ScriptRun(
            flags: flags, isReadOnly: isReadOnly || flags.contains(.noWrites), beganFull: server.isFull,
            slot: keys.first.map { Slot.of($0) })
        let database = server.client.database
        let rewrite = server.rewrite
        server.isInScript = true
        defer {
            server.isInScript = false
            server.client.database = database
            server.rewrite = rewrite
        }
        return try server.runner().run(
            script.reference, keys: keys, arguments: Array(words.from(3 + keyCount)), sum: utf8(sum))
    }

    private static func manage(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        switch (words.upper(1), words.count) {
        case ("LOAD", 3):
            let sum = ScriptLibrary.sum(words[2])
            _ = try load(server, words[2], sum)
            return .bulk(sum)
        case ("EXISTS", 3...):
            return .array(
                words.from(2).map { word in
                    .integer(server.withScripts { $0.script(word.lower) } == nil ? 0 : 1)
                })
        case ("FLUSH", 2), ("FLUSH", 3):
            guard words.count == 2 || ["SYNC", "ASYNC"].contains(words.upper(2)) else {
                throw RedisError("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
            }
            server.dropLua()
            return .ok
        case ("KILL", 2): throw RedisError("NOTBUSY No scripts in execution right now.")
        case ("LOAD", _), ("EXISTS", _), ("FLUSH", _), ("KILL", _):
            throw .argumentCount("script|" + utf8(words[1].lower))
        default: throw .unknownSubcommand(words[1], of: "SCRIPT")
        }
    }
}
