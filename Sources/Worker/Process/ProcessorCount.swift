// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Processors that this process may use.
enum ProcessorCount {
    static var available: Int { Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))) }
}
