// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Descriptors that are held open without use, so that some are left when the process has no other one.
struct DescriptorReserve: ~Copyable {
    private var held: [Int32] = []
    private let count: Int

    init(count: Int) {
        self.count = count
        refill()
    }

    deinit { for fd in held { close(fd) } }

    /// Frees one descriptor for a new connection.
    ///
    /// - Returns: false if none is left.
    mutating func give() -> Bool {
        guard let fd = held.popLast() else { return false }
        close(fd)
        return true
    }

    /// Takes free descriptors until the reserve is full again. Call where a connection has ended.
    mutating func refill() {
        while held.count < count {
            let fd = open("/dev/null", O_RDONLY | O_CLOEXEC)
            guard fd >= 0 else { return }
            held.append(fd)
        }
    }
}
