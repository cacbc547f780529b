/// The Lua scripts: only where reading and writing must be one step.
///
/// Each begins with `#!lua`, so that Redis refuses it as a whole when memory is full rather than half way (and refuses
/// keys of another slot); each touches keys of one hash tag only. Numbers are doubles in Lua: times and counts are below
/// 2^53 (`StateKeys.time`), sequences and versions are compared as text. Records carry their version in the first word.
enum StateScripts {}
