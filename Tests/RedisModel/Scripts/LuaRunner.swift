// SPDX-License-Identifier: Apache-2.0
internal import CLua

/// Lua 5.1 with the table `redis`, as scripts see it. One for each server.
final class LuaRunner {
    unowned let server: Server
    private let state: OpaquePointer
    /// Where Lua keeps the function that adds the place to an error.
    private var errorHandler: Int32 = 0

    init?(_ server: Server) {
        guard let state = luaL_newstate() else { return nil }
        self.server = server
        self.state = state
        luaL_openlibs(state)
        installCalls()
        guard loadOwn() else { return nil }
    }

    deinit { lua_close(state) }

    private func installCalls() {
        let context = Unmanaged.passUnretained(self).toOpaque()
        lua_createtable(state, 0, 8)
        let calls: [(String, @convention(c) (OpaquePointer?) -> Int32)] = [
            ("call", { LuaCalls.call($0, raises: true) }), ("pcall", { LuaCalls.call($0, raises: false) }),
            ("error_reply", { LuaCalls.makeError($0) }), ("status_reply", { LuaCalls.makeStatus($0) }),
            ("sha1hex", { LuaCalls.sum($0) }), ("acl_check_cmd", { LuaCalls.checkRights($0) }),
        ]
        for (name, handler) in calls {
            clua_push(state, handler, context)
            lua_setfield(state, -2, name)
        }
        lua_setfield(state, LUA_GLOBALSINDEX, "redis")
    }

    /// Runs the model's own Lua: what scripts must not reach is taken away, unknown globals are errors.
    private func loadOwn() -> Bool {
        guard luaL_loadbuffer(state, Self.own, Self.own.utf8.count, "=server") == 0, lua_pcall(state, 0, 1, 0) == 0
        else { return false }
        errorHandler = luaL_ref(state, LUA_REGISTRYINDEX)
        return true
    }

    private static let own = """
        local getinfo, error, type, tostring, rawget = debug.getinfo, error, type, tostring, rawget
        for _, name in ipairs({'debug', 'io', 'os', 'package', 'require', 'module', 'dofile', 'loadfile', 'print', 'newproxy',
            'getfenv', 'setfenv'}) do _G[name] = nil end
        math.random, math.randomseed = nil, nil
        local plainPcall = pcall
        local function outcome(isDone, fault, ...)
            if not isDone and type(fault) == 'table' then
                local text = rawget(fault, 'err')
                if type(text) == 'string' or type(text) == 'number' then fault = text end
            end
            return isDone, fault, ...
        end
        pcall = function(...) return outcome(plainPcall(...)) end
        redis.log = function() end
        redis.replicate_commands = function() return true end
        redis.set_repl = function() end
        redis.LOG_DEBUG, redis.LOG_VERBOSE, redis.LOG_NOTICE, redis.LOG_WARNING = 0, 1, 2, 3
        setmetatable(_G, {
            __index = function(_, name)
                error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
            end,
            __newindex = function() error('Attempt to modify a readonly table', 2) end,
        })
        return function(fault)
            local level = 2
            local place = getinfo(level, 'nSl')
            while place and (place.what == 'C' or place.source == '=server') do
                level = level + 1
                place = getinfo(level, 'nSl')
            end
            if type(fault) ~= 'table' then fault = {err = 'ERR ' .. tostring(fault)} end
            if place then fault.source, fault.line = place.source, place.currentline end
            return fault
        end
        """

    /// - Returns: where Lua keeps the script.
    func compile(_ body: Bytes) throws(RedisError) -> Int32 {
        let outcome = body.withUnsafeBytes {
            luaL_loadbuffer(
                state, $0.baseAddress?.assumingMemoryBound(to: CChar.self), body.count, "@user_script")
        }
        guard outcome == 0 else {
            let why = LuaValue.string(state, -1) ?? []
            lua_settop(state, -2)
            throw RedisError("ERR Error compiling script (new function): \(utf8(why))")
        }
        return luaL_ref(state, LUA_REGISTRYINDEX)
    }

    func run(_ reference: Int32, keys: [Bytes], arguments: [Bytes], sum: String) throws(RedisError) -> Reply {
        let top = lua_gettop(state)
        defer { lua_settop(state, top) }
        setGlobal("KEYS", keys)
        setGlobal("ARGV", arguments)
        lua_rawgeti(state, LUA_REGISTRYINDEX, errorHandler)
        lua_rawgeti(state, LUA_REGISTRYINDEX, reference)
        guard lua_pcall(state, 0, 1, lua_gettop(state) - 1) == 0 else { throw fault(sum) }
        return LuaValue.reply(state)
    }

    private func setGlobal(_ name: String, _ words: [Bytes]) {
        lua_pushstring(state, name)
        lua_createtable(state, Int32(words.count), 0)
        for (index, word) in words.enumerated() {
            LuaValue.push(state, word)
            lua_rawseti(state, -2, Int32(index + 1))
        }
        lua_rawset(state, LUA_GLOBALSINDEX)
    }

    /// What a script raised, and where.
    private func fault(_ sum: String) -> RedisError {
        guard lua_type(state, -1) == LUA_TTABLE else {
            return RedisError("ERR Error running script \(sum), \(utf8(LuaValue.string(state, -1) ?? []))")
        }
        let what = LuaValue.field(state, "err").map { utf8($0) } ?? "ERR unknown error"
        guard let source = LuaValue.field(state, "source"), let line = LuaValue.field(state, "line") else {
            return RedisError(what)
        }
        return RedisError("\(what) script: \(sum), on \(utf8(source)):\(utf8(line)).")
    }
}
