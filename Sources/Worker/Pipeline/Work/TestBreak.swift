// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Defects that the chaos checker must find, one at a time: `CARILLON_TEST_BREAK=<name>`, in debug builds only
/// (docs/chaos.md). In a release build every query returns false and costs nothing.
enum TestBreak: String {
    /// An event's offset is settled as soon as it is read.
    case commitEarly = "commit-early"
    /// Every claim is answered as if the pair were new.
    case noDedup = "no-dedup"
    /// Every other counted message is counted a second time.
    case badgeTwice = "badge-twice"
    /// The check before sending reports that nothing has changed.
    case noRecheck = "no-recheck"
    /// Every sixteenth result of a push is not written.
    case dropResult = "drop-result"
    /// A push that needs a retry ends without a record.
    case swallowRetry = "swallow-retry"
    /// Every second page of a group's members is dropped.
    case forgetPage = "forget-page"
    /// A revoke touches neither its target's mark nor the badge.
    case ignoreRevoke = "ignore-revoke"
    /// Changes that a previous Redis process accepted count as replicated.
    case trustCopies = "trust-copies"

    #if DEBUG
        private static let active: TestBreak? = getenv("CARILLON_TEST_BREAK")
            .flatMap { TestBreak(rawValue: String(cString: $0)) }

        static func isOn(_ defect: TestBreak) -> Bool { active == defect }
    #else
        @inline(__always) static func isOn(_ defect: TestBreak) -> Bool { false }
    #endif
}
