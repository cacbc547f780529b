// SPDX-License-Identifier: Apache-2.0
import CLibevent
import Glibc

/// System limits of a process with secrets and many connections, set before it has either.
public enum ProcessLimits {
    /// More connections than any shard count needs. Limits of up to a thousand million exist and are not used fully.
    private static let descriptorsWanted: rlim_t = 65_536

    /// Raises the soft limit of descriptors to the hard one, at most 65 536. Returns the resulting limit.
    @discardableResult
    public static func raiseDescriptors() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
        let wanted = min(limit.rlim_max, descriptorsWanted)
        if limit.rlim_cur < wanted {
            var raised = limit
            raised.rlim_cur = wanted
            if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &raised) == 0 { limit = raised }
        }
        return Int(clamping: limit.rlim_cur)
    }

    /// Why the system's limits are too low for so many shards; nil: they are not. Below them libraries abort.
    ///
    /// - Parameter descriptors: as `raiseDescriptors` gave them.
    public static func shortage(shards: Int, descriptors: Int) -> String? {
        let wanted = 64 + 24 * shards
        if descriptors < wanted {
            return "\(descriptors) file descriptors (ulimit -n) are too few for \(shards) shards: \(wanted) are needed"
        }
        var space = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &space) == 0 else { return nil }
        let bytes = rlim_t(512 + 256 * shards) << 20
        guard space.rlim_cur < bytes else { return nil }
        return "\(space.rlim_cur >> 20) MB of address space (ulimit -v) are too few for \(shards) shards: "
            + "\(bytes >> 20) are needed"
    }

    /// No core files, and only root may read this process's memory, because it contains keys and tokens.
    ///
    /// Afterwards `/proc/self` belongs to root, so paths in it (`environ`) must be read before. The sanitizers' leak
    /// check sets the flag while it runs.
    public static func forbidDumps() {
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        forbid_memory_access()
    }

    /// Whether the system accepted both.
    public static var dumpsAreForbidden: Bool {
        var limit = rlimit()
        return getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0 && limit.rlim_max == 0
            && memory_access_is_forbidden() != 0
    }
}
