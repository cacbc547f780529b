// SPDX-License-Identifier: Apache-2.0
/// The Lua scripts, used only if reading and writing must be one step.
///
/// Each begins with `#!lua`, so that Redis with full memory refuses it as a whole, not in the middle (and refuses keys
/// of another slot). Each uses keys of one hash tag only. Numbers are doubles in Lua: times and counts are below 2^53
/// (`StateKeys.time`), sequences and versions are compared as text. Records have their version as the first word.
enum StateScripts {}
