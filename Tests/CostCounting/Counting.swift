// SPDX-License-Identifier: Apache-2.0
/// Which work of a simulation `make cost` counts: the turns of one process without what the models do in them.
///
/// Callgrind begins or ends counting where a function named `level` is entered, and takes that back where it returns. It ignores
/// one that is entered again before that, so each level has its own.
package enum Counting {
    /// Unsafe: a world that counts is alone in its program.
    nonisolated(unsafe) private static var level = 0

    /// A turn of the process.
    package static func turn(_ body: () -> Void) { level1(body) }

    /// Work of a model.
    package static func outside<Result>(_ body: () -> Result) -> Result {
        switch level {
        case 1: level2(body)
        case 3: level4(body)
        default: body()
        }
    }

    /// Work of the process that a model calls.
    package static func inside<Result>(_ body: () -> Result) -> Result { level == 2 ? level3(body) : body() }

    @inline(never) private static func level1(_ body: () -> Void) {
        level = 1
        body()
        level = 0
    }

    @inline(never) private static func level2<Result>(_ body: () -> Result) -> Result {
        level = 2
        defer { level = 1 }
        return body()
    }

    @inline(never) private static func level3<Result>(_ body: () -> Result) -> Result {
        level = 3
        defer { level = 2 }
        return body()
    }

    @inline(never) private static func level4<Result>(_ body: () -> Result) -> Result {
        level = 4
        defer { level = 3 }
        return body()
    }
}
