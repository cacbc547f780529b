// SPDX-License-Identifier: Apache-2.0
/// The start of a child process, which copies each descriptor of this process.
public enum ChildStart {
    /// Held while a child has copies of this process's descriptors.
    ///
    /// A copy keeps the port of a listener that this process closes. Whoever closes a listener to bind its port again
    /// holds the lock too.
    ///
    /// The value means nothing. An empty one would lie at the object's head, and the thread sanitizer would report a race.
    public static let lock = Guarded(false)
}
