// SPDX-License-Identifier: Apache-2.0
/// For a node of a cluster, and for the client's owner.
extension RedisClient {
    /// Sends a command of a cluster client and keeps it until the reply.
    ///
    /// - Parameter asking: sent after an ASKING, and a script with its source, because a refused command would return
    ///   without one.
    func send(_ call: NodeCall, _ encoded: UnsafeRawBufferPointer, asking: Bool) throws(RedisFault) {
        let connection = try admit()
        if asking {
            var command = takeBuilder()
            command.arg(word: "ASKING")
            _ = command.finish()
            connection.send(command, .asking, 0, 0, timeoutNanos: limits.commandTimeoutNanos)
            builder = consume command
        }
        write(call, encoded, isFull: asking, on: connection)
    }

    func write(
        _ call: NodeCall, _ encoded: UnsafeRawBufferPointer, isFull: Bool, on connection: RedisConnection
    ) {
        var command = takeBuilder()
        var purpose = Pipeline.Purpose.command
        if let script = call.script {
            let index = scripts.index(of: script)
            let isKnown = index < ScriptTable.max
            let isLoaded = isKnown && !isFull && connection.loadedScripts & (1 << UInt64(index)) != 0
            command.arg(word: isLoaded ? "EVALSHA" : "EVAL")
            command.arg(isLoaded ? script.digest : script.source)
            if isKnown, !isFull { connection.markLoaded(index) }
            purpose = .script(index: UInt8(truncatingIfNeeded: index))
        }
        command.append(encoded: encoded, arguments: call.argumentCount)
        _ = command.finish()
        connection.send(
            command, keeping: encoded, call, purpose, timeoutNanos: limits.commandTimeoutNanos)
        builder = consume command
    }

    /// The script of an index from this client's table.
    func script(_ index: Int) -> RedisScript? { scripts[index] }

    /// Sends a query of the client's owner. `inquirer` receives the answer.
    func inquire(_ id: UInt64, _ build: (inout RedisCommand) -> Void) throws(RedisFault) {
        let connection = try admit()
        var command = takeBuilder()
        build(&command)
        _ = command.finish()
        connection.send(command, .inquiry, 0, id, timeoutNanos: limits.commandTimeoutNanos)
        builder = consume command
    }
}
