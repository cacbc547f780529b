// SPDX-License-Identifier: Apache-2.0
import EventLoop

extension SmallRandom {
    mutating func below(_ limit: Int) -> Int { limit <= 1 ? 0 : Int(next() % UInt64(limit)) }

    /// Forty hexadecimal digits, like a run id.
    mutating func name() -> String {
        let digits = Array("0123456789abcdef".utf8)
        return utf8((0..<40).map { _ in digits[below(16)] })
    }
}
