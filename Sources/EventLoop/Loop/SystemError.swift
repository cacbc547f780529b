// SPDX-License-Identifier: Apache-2.0
import Glibc

/// The system's text for an errno value. Call it at once, because the next call may overwrite errno.
func systemErrorText(_ code: Int32) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
        guard let start = buffer.baseAddress else { return "errno \(code)" }
        start[0] = 0
        // The POSIX form, which fills the buffer. Swift's Glibc module does not offer GNU's.
        guard strerror_r(code, start, buffer.count) == 0 else { return "errno \(code)" }
        return String(cString: start)
    }
}
