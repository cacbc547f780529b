public import EventLoop

/// An actor on a running loop, so that a test can make and use the loop's objects in place.
///
/// It ends with its last reference; what `keep` was given is released on the loop.
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

    /// Runs on the loop, whichever thread lets go last and however the test ended; so the loop ends here and not before.
    isolated deinit {
        end()
        loop.stop()
    }

    /// Releases what was kept, on the loop.
    public func end() { kept.removeAll() }
}
