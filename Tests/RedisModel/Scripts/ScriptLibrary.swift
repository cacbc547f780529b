// SPDX-License-Identifier: Apache-2.0
internal import COpenSSL

/// Scripts that a server knows, by the SHA-1 of their text.
struct ScriptLibrary {
    struct Script {
        let head: ScriptHead
        /// Where Lua keeps the function.
        let reference: Int32
    }

    private var bySum: [Bytes: Script] = [:]

    func script(_ sum: Bytes) -> Script? { bySum[sum] }

    mutating func add(_ sum: Bytes, _ script: Script) { bySum[sum] = script }

    static func sum(_ body: Bytes) -> Bytes {
        var digest = [UInt8](repeating: 0, count: 20)
        body.withUnsafeBufferPointer { bytes in
            _ = SHA1(bytes.baseAddress, bytes.count, &digest)
        }
        let digits = Array("0123456789abcdef".utf8)
        return digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    }
}
