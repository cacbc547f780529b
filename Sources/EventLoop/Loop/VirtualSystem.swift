// SPDX-License-Identifier: Apache-2.0
/// Takes the place of the kernel and the clocks under a loop, so that tests run loops in virtual time on one thread.
///
/// It decides when a loop has its next turn (`Loop.runTurn`) and the ready work in it. All calls come on the one thread.
package protocol VirtualSystem: AnyObject {
    /// The monotonic clock of the loop's process, between turns.
    func nowNanos(of loop: Loop) -> UInt64
    /// The wall clock of the loop's process in Unix ms, between turns.
    func wallMs(of loop: Loop) -> Int64
    /// Seeds the generators of the loop's process: another seed at each call.
    func makeSeed(of loop: Loop) -> UInt64
    /// Work was given to a loop that rests.
    func wake(_ loop: Loop)

    /// The timer wants `comeUp()` at that time, in place of an earlier one.
    func schedule(_ timer: LoopTimer, of loop: Loop, atNanos: UInt64)
    func forget(_ timer: LoopTimer, of loop: Loop)

    /// The watcher wants `comeUp()` while the descriptor is readable and it is not suspended.
    func watch(_ watcher: FDWatcher, of loop: Loop, fd: Int32)
    func forget(_ watcher: FDWatcher, of loop: Loop)

    /// `Link.didResolve` follows in a turn of its loop.
    func resolve(_ host: String, for link: Link, of loop: Loop)
    /// `Link.didConnect` follows in a turn of its loop, or nothing.
    func connect(_ link: Link, of loop: Loop, to address: String) -> any VirtualStream
    /// Returns the port; nil if another listener has it. `Listener.didAccept` follows for each connection.
    func listen(_ listener: Listener, of loop: Loop, host: String, port: UInt16) -> UInt16?
    func forget(_ listener: Listener, of loop: Loop)
}

/// One end of a virtual connection. The system calls `Link.comeUp` when it can read or write.
package protocol VirtualStream: AnyObject {
    /// An accepted stream has its link.
    func attach(_ link: Link)
    func read(into room: UnsafeMutableRawBufferPointer) -> VirtualStep
    func write(_ bytes: UnsafeRawBufferPointer) -> VirtualStep
    /// - Parameter isReset: the peer sees a reset, and loses unread bytes.
    func close(isReset: Bool)
}

/// The result of a call to a virtual stream.
package enum VirtualStep {
    case bytes(Int)
    /// Nothing to read, or no room to write.
    case blocked
    case ended(LinkFault)
}
