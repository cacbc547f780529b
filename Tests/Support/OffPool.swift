// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Runs blocking work on a thread of its own and waits without holding a thread of the shared pool.
public func offPool<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        let box = Unmanaged.passRetained(Box { continuation.resume(with: Result { try body() }) })
        var thread = pthread_t()
        let failed = pthread_create(
            &thread, nil,
            { argument in
                if let argument { Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().run() }
                return nil
            }, box.toOpaque())
        if failed == 0 { pthread_detach(thread) } else { box.takeRetainedValue().run() }
    }
}

private final class Box: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}
