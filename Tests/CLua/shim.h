// SPDX-License-Identifier: Apache-2.0
#include <lua.h>
#include <lauxlib.h>
#include <lualib.h>

// Macros of Lua that Swift does not import, and an entry that raises Lua's errors: lua_error leaves its caller by longjmp, which
// no Swift frame may be part of.

typedef int (*clua_handler)(lua_State *);

static inline void *clua_context(lua_State *state) { return lua_touserdata(state, lua_upvalueindex(1)); }

static int clua_enter(lua_State *state) {
    clua_handler handler = (clua_handler)lua_touserdata(state, lua_upvalueindex(2));
    int results = handler(state);
    return results < 0 ? lua_error(state) : results;
}

/// Pushes a function that calls `handler`. A negative result raises the value on top of the stack as an error.
static inline void clua_push(lua_State *state, clua_handler handler, void *context) {
    lua_pushlightuserdata(state, context);
    lua_pushlightuserdata(state, (void *)handler);
    lua_pushcclosure(state, clua_enter, 2);
}
