// SPDX-License-Identifier: Apache-2.0
import Testing

/// Compares values taken from noncopyable or mutating things, which the macro's own capture cannot hold.
func same<T: Equatable>(
    _ found: T, _ wanted: T, _ note: String = "", sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(found == wanted, "\(note)", sourceLocation: sourceLocation)
}
