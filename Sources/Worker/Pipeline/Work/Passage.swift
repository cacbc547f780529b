// SPDX-License-Identifier: Apache-2.0
/// The answer of a component on the path: whether the work goes on, or the component keeps it.
enum Passage {
    /// The caller continues with it.
    case goesOn
    /// It waits or is parked. The component that keeps it puts it back on the path, or ends it.
    case kept
}
