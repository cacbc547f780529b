// SPDX-License-Identifier: Apache-2.0
internal import CLua

/// Values between Swift and Lua's stack, by Redis' rules of conversion.
enum LuaValue {
    /// A string or number at this place; nil for any other type.
    static func string(_ state: OpaquePointer?, _ index: Int32) -> Bytes? {
        var length = 0
        guard let start = lua_tolstring(state, index, &length) else { return nil }
        return Array(UnsafeRawBufferPointer(start: start, count: length))
    }

    /// A field of the table on top, as text.
    static func field(_ state: OpaquePointer?, _ name: String) -> Bytes? {
        lua_pushstring(state, name)
        lua_rawget(state, -2)
        defer { lua_settop(state, -2) }
        return string(state, -1)
    }

    static func push(_ state: OpaquePointer?, _ bytes: Bytes) {
        bytes.withUnsafeBytes { raw in
            lua_pushlstring(state, raw.baseAddress?.assumingMemoryBound(to: CChar.self) ?? nil, bytes.count)
        }
    }

    static func push(_ state: OpaquePointer?, _ reply: Reply, isShortest: Bool) {
        _ = lua_checkstack(state, 4)
        switch reply {
        case .status(let text): pushTable(state, "ok", text)
        case .error(let error): pushTable(state, "err", error.text)
        case .number(let number): lua_pushnumber(state, Double(number))
        case .bulk(let bytes): push(state, bytes)
        case .double(let number): push(state, Bytes(digits(of: number, isShortest: isShortest)))
        case .verbatim(let text): push(state, Bytes(text))
        case .null, .nullArray: lua_pushboolean(state, 0)
        case .array(let elements), .map(let elements), .set(let elements):
            lua_createtable(state, Int32(elements.count), 0)
            for (index, element) in elements.enumerated() {
                push(state, element, isShortest: isShortest)
                lua_rawseti(state, -2, Int32(index + 1))
            }
        }
    }

    static func pushTable(_ state: OpaquePointer?, _ field: String, _ text: String) {
        lua_createtable(state, 0, 1)
        push(state, Bytes(field))
        push(state, Bytes(text))
        lua_rawset(state, -3)
    }

    /// A script's value on top of the stack as a reply.
    static func reply(_ state: OpaquePointer?, depth: Int = 0) -> Reply {
        switch lua_type(state, -1) {
        case LUA_TSTRING: return .bulk(string(state, -1) ?? [])
        case LUA_TNUMBER: return .integer(integer(lua_tonumber(state, -1)))
        case LUA_TBOOLEAN: return lua_toboolean(state, -1) != 0 ? .integer(1) : .null
        case LUA_TTABLE: return depth < 200 ? table(state, depth) : .error(RedisError("ERR reached lua stack limit"))
        default: return .null
        }
    }

    private static func table(_ state: OpaquePointer?, _ depth: Int) -> Reply {
        _ = lua_checkstack(state, 4)
        if let error = textField(state, "err") { return .error(RedisError(utf8(error))) }
        if let status = textField(state, "ok") { return .status(utf8(status)) }
        lua_pushstring(state, "double")
        lua_rawget(state, -2)
        let number = lua_type(state, -1) == LUA_TNUMBER ? lua_tonumber(state, -1) : nil
        lua_settop(state, -2)
        if let number { return .double(number) }
        var elements: [Reply] = []
        while true {
            lua_rawgeti(state, -1, Int32(elements.count + 1))
            let isEnd = lua_type(state, -1) == LUA_TNIL
            if !isEnd { elements.append(reply(state, depth: depth + 1)) }
            lua_settop(state, -2)
            if isEnd { return .array(elements) }
        }
    }

    /// A field only if it is a string.
    private static func textField(_ state: OpaquePointer?, _ name: String) -> Bytes? {
        lua_pushstring(state, name)
        lua_rawget(state, -2)
        defer { lua_settop(state, -2) }
        return lua_type(state, -1) == LUA_TSTRING ? string(state, -1) : nil
    }

    /// As C converts on x86-64: cut to an integer, and the least one for what does not fit.
    private static func integer(_ number: Double) -> Int64 {
        number.isNaN || abs(number) >= 0x1p63 ? .min : Int64(number)
    }
}
