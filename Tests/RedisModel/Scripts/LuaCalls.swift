// SPDX-License-Identifier: Apache-2.0
internal import CLua

/// The functions of the table `redis`. Each returns its number of results; negative raises the top as an error.
enum LuaCalls {
    private static func runner(_ state: OpaquePointer?) -> LuaRunner? {
        clua_context(state).map { Unmanaged<LuaRunner>.fromOpaque($0).takeUnretainedValue() }
    }

    static func call(_ state: OpaquePointer?, raises: Bool) -> Int32 {
        guard let server = runner(state)?.server else { return 0 }
        let isShortest = server.options.hasShortestDigits
        let reply: Reply
        do throws(RedisError) {
            reply = server.call(try words(state, isShortest))
        } catch {
            reply = .error(error)
        }
        lua_settop(state, 0)
        LuaValue.push(state, reply, isShortest: isShortest)
        return reply.isError && raises ? -1 : 1
    }

    private static func words(_ state: OpaquePointer?, _ isShortest: Bool) throws(RedisError) -> [Bytes] {
        let count = lua_gettop(state)
        guard count > 0 else {
            throw RedisError("ERR Please specify at least one argument for this redis lib call")
        }
        var words: [Bytes] = []
        words.reserveCapacity(Int(count))
        for index in 1...count {
            if lua_type(state, index) == LUA_TNUMBER {
                words.append(Bytes(digits(of: lua_tonumber(state, index), isShortest: isShortest)))
            } else if let bytes = LuaValue.string(state, index) {
                words.append(bytes)
            } else {
                throw RedisError("ERR Lua redis lib command arguments must be strings or integers")
            }
        }
        return words
    }

    private static func oneString(_ state: OpaquePointer?) -> Bytes? {
        lua_gettop(state) == 1 && lua_type(state, 1) == LUA_TSTRING ? LuaValue.string(state, 1) : nil
    }

    static func makeError(_ state: OpaquePointer?) -> Int32 {
        guard let bytes = oneString(state) else {
            LuaValue.pushTable(state, "err", "ERR wrong number or type of arguments")
            return 1
        }
        let text = utf8(bytes.first == 45 ? bytes.dropFirst() : bytes[...])
        LuaValue.pushTable(state, "err", text.contains(" ") ? text : "ERR " + text)
        return 1
    }

    static func makeStatus(_ state: OpaquePointer?) -> Int32 {
        guard let bytes = oneString(state) else {
            LuaValue.pushTable(state, "err", "ERR wrong number or type of arguments")
            return 1
        }
        LuaValue.pushTable(state, "ok", utf8(bytes))
        return 1
    }

    static func sum(_ state: OpaquePointer?) -> Int32 {
        guard lua_gettop(state) == 1 else {
            LuaValue.pushTable(state, "err", "ERR wrong number of arguments")
            return -1
        }
        LuaValue.push(state, ScriptLibrary.sum(LuaValue.string(state, 1) ?? []))
        return 1
    }

    static func checkRights(_ state: OpaquePointer?) -> Int32 {
        guard let server = runner(state)?.server else { return 0 }
        let words: [Bytes]
        do throws(RedisError) {
            words = try self.words(state, false)
        } catch {
            LuaValue.push(state, .error(error), isShortest: false)
            return -1
        }
        guard let command = CommandTable.command(words.first ?? []), command.takes(words) else {
            LuaValue.pushTable(state, "err", "ERR Invalid command passed to redis.acl_check_cmd()")
            return -1
        }
        let user = server.client.user.flatMap { server.users[$0] }
        let mayRun = user?.mayRun(command, words) ?? true
        let mayUse = user?.mayUse(command.keys(in: words), writes: command.flags.contains(.write)) ?? true
        lua_pushboolean(state, mayRun && mayUse ? 1 : 0)
        return 1
    }
}
