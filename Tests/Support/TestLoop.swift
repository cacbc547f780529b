// SPDX-License-Identifier: Apache-2.0
public import EventLoop

/// An actor on a running loop, so that a test can make and use the loop's objects in place.
///
/// Stop it at the end of the test; what `keep` was given is released on the loop before.
public actor TestLoop {
    public nonisolated let loop: Loop
    private var kept: [AnyObject] = []

    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    public init(_ name: String = "test") throws(LoopFault) {
        loop = try Loop(name: name)
        loop.start()
    }

    /// Runs a closure on the loop's thread.
    public func run<Value: Sendable>(_ body: @Sendable (isolated TestLoop) throws -> Value) rethrows -> Value {
        try body(self)
    }

    /// Holds an object until `end()`.
    public func keep(_ object: AnyObject) { kept.append(object) }

    /// Releases what was kept, on the loop, and stops the loop.
    public nonisolated func end() async {
        await release()
        loop.stop()
    }

    /// Of a test that threw before its end; what was bound to a loop that has ended may be released anywhere.
    deinit { loop.stop() }

    private func release() { kept.removeAll() }
}
