// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Runs `body` once on a detached thread. Returns false if no thread can be created; nothing runs then.
public func runDetached(_ body: @escaping @Sendable () -> Void) -> Bool {
    final class Box: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    let box = Unmanaged.passRetained(Box(body))
    var thread = pthread_t()
    let failed = pthread_create(
        &thread, nil,
        { argument in
            if let argument { Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body() }
            return nil
        }, box.toOpaque())
    if failed == 0 { pthread_detach(thread) } else { box.release() }
    return failed == 0
}

/// Runs blocking work on a thread of its own; where none can be had, on the caller's.
public func onOwnThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        if !runDetached({ continuation.resume(returning: body()) }) { continuation.resume(returning: body()) }
    }
}
