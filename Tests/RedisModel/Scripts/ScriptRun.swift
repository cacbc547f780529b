// SPDX-License-Identifier: Apache-2.0
/// The state of a running script.
struct ScriptRun {
    var flags: ScriptHead.Flags = []
    var isReadOnly = false
    /// Memory was full when it began.
    var beganFull = false
    /// It has called a command that writes, and can no longer be refused.
    var hasWritten = false
    /// The slot of its keys in a cluster.
    var slot: Int?
}
