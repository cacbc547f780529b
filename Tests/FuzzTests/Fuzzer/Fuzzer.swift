// SPDX-License-Identifier: Apache-2.0
import Dispatch
import EventLoop
import Glibc

/// The loop that all inputs run on, one after the other.
private let loop: Loop = {
    guard let loop = try? Loop(name: "fuzz") else { fatalError("no event loop") }
    loop.start()
    return loop
}()

private let target: FuzzTarget = {
    let name = getenv("CARILLON_FUZZ_TARGET").map { String(cString: $0) } ?? ""
    guard let target = FuzzTarget(rawValue: name) else {
        fatalError("CARILLON_FUZZ_TARGET must be one of \(FuzzTarget.allCases.map(\.rawValue))")
    }
    return target
}()

/// libFuzzer's entry: a complaint ends the process, so that the input is kept.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    let input = Array(UnsafeBufferPointer(start: data, count: count))
    let done = DispatchSemaphore(value: 0)
    loop.post {
        let complaints = input.withUnsafeBytes { target.run($0, on: loop) }
        if let first = complaints.first { fatalError(first) }
        done.signal()
    }
    done.wait()
    return 0
}
